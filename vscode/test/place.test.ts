import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { bridgeUrl, findPlace, tokenPlaces } from '../src/place';

test('the bridge of an address', () => {
  const cases = {
    'http://127.0.0.1:18741': 'ws://127.0.0.1:18741/bridge',
    'http://localhost:1/v1/': 'ws://localhost:1/bridge',
    'https://[::1]:1/base': 'wss://[::1]:1/base/bridge',
    'ws://127.1.2.3': 'ws://127.1.2.3/bridge',
  };
  for (const [address, url] of Object.entries(cases)) assert.equal(bridgeUrl(address).href, url);
});

test('the token never goes to another machine', () => {
  for (const host of ['example.com', '127.0.0.1.example.com', '10.0.0.1', 'localhost.example', '[::2]', '127.0.0.1@example.com']) {
    assert.throws(() => bridgeUrl(`http://${host}`), /another machine/);
  }
  for (const address of ['', 'nonsense', 'file:///etc', '127.0.0.1:18741']) assert.throws(() => bridgeUrl(address), /no address of a gateway/);
});

test('a name and password in the address are not sent', () => {
  assert.equal(bridgeUrl('http://u:p@127.0.0.1').href, 'ws://127.0.0.1/bridge');
});

test('where the gateway writes its token, by system', () => {
  assert.deepEqual(tokenPlaces({}, 'linux', '/h'), ['/h/.local/state/toolwire/bridge-token']);
  assert.deepEqual(tokenPlaces({ XDG_STATE_HOME: '/s' }, 'linux', '/h'), ['/s/toolwire/bridge-token', '/h/.local/state/toolwire/bridge-token']);
  assert.deepEqual(tokenPlaces({}, 'darwin', '/h'), ['/h/Library/Application Support/toolwire/bridge-token']);
  assert.deepEqual(tokenPlaces({ LOCALAPPDATA: '/a' }, 'win32', '/h'), ['/a/toolwire/bridge-token']);
});

test('the environment goes before the settings, and those before the usual places', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'toolwire-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'token');
  writeFileSync(file, 'from-file\n');
  mkdirSync(join(folder, 'toolwire'));
  writeFileSync(join(folder, 'toolwire', 'bridge-token'), 'from-state');
  const settings = { url: 'http://127.0.0.1:1', tokenFile: file };
  const environment = { TOOLWIRE_URL: 'http://127.0.0.1:2', TOOLWIRE_BRIDGE_TOKEN: ' from-environment ' };
  const found = async (...given: Parameters<typeof findPlace>) => {
    const { url, token } = await findPlace(...given);
    return [url.port, token];
  };
  assert.deepEqual(await found(settings, environment), ['2', 'from-environment']);
  assert.deepEqual(await found(settings, {}), ['1', 'from-file']);
  assert.deepEqual(await found({ url: '', tokenFile: '' }, { XDG_STATE_HOME: folder }), ['18741', 'from-state']);
  await assert.rejects(found({ ...settings, tokenFile: folder }, {}), /no token in .*toolwire serve/);
  writeFileSync(file, 'two\nlines');
  await assert.rejects(found(settings, {}), error => !String(error).includes('lines'));
  for (const given of ['secret-one\nsecret-two', 'secret \u00e4', 'secret'.repeat(1000)]) {
    const told = (error: unknown) => /TOOLWIRE_BRIDGE_TOKEN holds no token/.test(String(error)) && !String(error).includes('secret');
    await assert.rejects(found(settings, { TOOLWIRE_BRIDGE_TOKEN: given }), told);
  }
});
