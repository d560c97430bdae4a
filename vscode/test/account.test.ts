import assert from 'node:assert/strict';
import test from 'node:test';
import { AccountHint } from '../src/account';
import { contextOf, FakeWindow } from './fake';

const hintIn = (window: FakeWindow) => new AccountHint(window.api, contextOf(window).globalState);

function newcomer(): FakeWindow {
  const window = new FakeWindow();
  window.accounts = Promise.resolve([]);
  return window;
}

test('without an account and without the setting the user learns of it, once', async () => {
  const window = newcomer();
  const hint = hintIn(window);
  await Promise.all([hint.offer(), hint.offer()]);
  await hint.offer();
  assert.equal(window.messages.length, 1);
  assert.match(window.messages[0]!, /sign-in.*"chat\.allowAnonymousAccess": true/);
  await hintIn(window).offer(); // the next window: nothing was dismissed
  assert.equal(window.messages.length, 2);
});

test('it shows where the setting goes, and is not shown again', async () => {
  const window = newcomer();
  window.answer = 'Show me how';
  await hintIn(window).offer();
  assert.equal(window.clipboard, '"chat.allowAnonymousAccess": true,');
  assert.deepEqual(window.executed, ['workbench.action.openSettingsJson']);
  await hintIn(window).offer();
  assert.equal(window.messages.length, 2); // the hint, and what to do with the clipboard
});

test('it can be dismissed for good', async () => {
  const window = newcomer();
  window.answer = 'Do not show again';
  await hintIn(window).offer();
  await hintIn(window).offer();
  assert.deepEqual([window.messages.length, window.executed], [1, []]);
});

test('with an account, with the setting, or where there are no accounts at all, nothing is said', async () => {
  for (const prepare of [
    () => {},
    (window: FakeWindow) => void Object.assign(window, { accounts: Promise.resolve([]), settings: { allowAnonymousAccess: true } }),
    (window: FakeWindow) => void (window.accounts = Promise.reject(new Error('no such provider'))),
  ]) {
    const window = new FakeWindow();
    prepare(window);
    await hintIn(window).offer();
    assert.deepEqual(window.messages, []);
  }
});
