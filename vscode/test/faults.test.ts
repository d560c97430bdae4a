import assert from 'node:assert/strict';
import test from 'node:test';
import { errorOf, faultOf } from '../src/faults';
import { FakeWindow, ModelError } from './fake';

const { api } = new FakeWindow();

test('code, name and message are kept, and the cause is told', () => {
  assert.deepEqual(faultOf(api, ModelError.Blocked('too many')), { code: 'Blocked', name: 'LanguageModelError', message: 'too many' });
  const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { name: 'ChatRateLimited' });
  assert.deepEqual(faultOf(api, error), { code: 'Unknown', name: 'ChatRateLimited', message: 'outer: inner' });
  assert.equal(faultOf(api, Object.assign(new Error('x'), { code: 429 })).code, '429');
});

test('what is no error still says something', () => {
  assert.match(faultOf(api, { isTrusted: false }).message, /image could not be decoded/);
  assert.deepEqual(faultOf(api, undefined), { code: 'Unknown', name: '', message: 'VS Code gave no reason' });
  assert.equal(faultOf(api, 'words').message, 'words');
  assert.equal(faultOf(api, { message: 'like an error' }).message, 'like an error');
});

test('a message has an end', () => {
  assert.equal(faultOf(api, new Error('x'.repeat(1e6))).message.length, 4000);
});

test('a refusal of the gateway becomes the error that VS Code knows', () => {
  for (const code of ['NoPermissions', 'Blocked', 'NotFound']) {
    const error = errorOf(api, { code, name: 'n', message: 'm' });
    assert.ok(error instanceof ModelError && error.code === code && error.message === 'm');
  }
  assert.ok(!(errorOf(api, { code: 'Unknown', name: 'n', message: 'm' }) instanceof ModelError));
});
