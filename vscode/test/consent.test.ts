import assert from 'node:assert/strict';
import test from 'node:test';
import type * as vscode from 'vscode';
import { askFor, wanted } from '../src/consent';
import { FakeModel, FakeWindow, ModelError, saying, TextPart } from './fake';

const models = (...given: FakeModel[]) => given as unknown as vscode.LanguageModelChat[];

test('one model of each vendor is asked for, or those that were refused', () => {
  const lent = models(new FakeModel('a', '1'), new FakeModel('a', '2'), new FakeModel('b', '3'));
  assert.deepEqual(wanted(lent, []).map(model => model.id), ['1', '3']);
  assert.deepEqual(wanted(lent, [lent[1]!]).map(model => model.id), ['2']);
});

test('each gets one tiny request that says why, and is stopped at its first word', async () => {
  const good = new FakeModel('a', '1', async function* ({ token }) {
    yield new TextPart('yes');
    assert.ok(token.isCancellationRequested);
    throw new Error('network request aborted');
  });
  const silent = new FakeModel('b', '2', () => saying());
  const bad = new FakeModel('c', '3');
  bad.refusal = ModelError.NoPermissions('no');
  const outcomes = await askFor(new FakeWindow().api, models(good, silent, bad));
  assert.deepEqual(outcomes.map(({ why, isRefused }) => [why, isRefused]), [['', false], ['', false], ['no', true]]);
  assert.match(String(good.sent[0]!.options.justification), /toolwire/);
});

test('a provider that denies the request was reached: the user has consented', async () => {
  const provider = new FakeModel('a', '1', async function* () {
    throw ModelError.NoPermissions('the plan has no such model');
  });
  const [outcome] = await askFor(new FakeWindow().api, models(provider));
  assert.deepEqual([outcome!.why, outcome!.isRefused], ['the plan has no such model', false]);
});
