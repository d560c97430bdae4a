// Where the gateway is, and the token that it knows this user by.
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Place { url: URL; token: string }
export interface Settings { url: string; tokenFile: string }
export type Environment = Record<string, string | undefined>;

/** No gateway is there; starting one would help. */
export class NotRunning extends Error {}

const TOKEN = /^[\x21-\x7e]{1,4096}$/;
const DEFAULT = 'http://127.0.0.1:18741';

/** Throws Error, with a message for the user. */
export function findUrl(settings: Settings, environment: Environment): URL {
  return bridgeUrl(environment.TOOLWIRE_URL?.trim() || settings.url.trim() || DEFAULT);
}

/** Throws Error, with a message for the user. */
export async function findPlace(settings: Settings, environment: Environment): Promise<Place> {
  const url = findUrl(settings, environment);
  const given = environment.TOOLWIRE_BRIDGE_TOKEN?.trim();
  // What is no token is not sent, and not shown either: half of it may be one.
  if (given && !TOKEN.test(given)) throw new Error('TOOLWIRE_BRIDGE_TOKEN holds no token, but several words or lines; give VS Code the one that the gateway has.');
  return { url, token: given || (await readToken(settings.tokenFile.trim(), environment)) };
}

/** The bridge of the gateway at this address. The token is a secret of this machine, so it never leaves it. */
export function bridgeUrl(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !['http:', 'https:', 'ws:', 'wss:'].includes(url.protocol)) {
    throw new Error(`"${address.slice(0, 200)}" is no address of a gateway; expected one such as ${DEFAULT}.`);
  }
  if (!/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname)) {
    throw new Error(`${url.hostname} is another machine; the gateway must be on this one, at an address such as ${DEFAULT}.`);
  }
  const scheme = url.protocol === 'https:' || url.protocol === 'wss:' ? 'wss' : 'ws';
  return new URL(`${scheme}://${url.host}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}/bridge`);
}

/** Where a gateway may have written its token: what says so first, then the place that its system has for it. */
export function tokenPlaces(environment: Environment, platform = process.platform, home = homedir()): string[] {
  const name = join('toolwire', 'bridge-token');
  if (platform === 'win32') return [join(environment.LOCALAPPDATA || join(home, 'AppData', 'Local'), name)];
  const state = environment.XDG_STATE_HOME?.trim();
  const usual = platform === 'darwin' ? join(home, 'Library', 'Application Support') : join(home, '.local', 'state');
  return [...(state ? [join(state, name)] : []), join(usual, name)];
}

async function readToken(file: string, environment: Environment): Promise<string> {
  const places = file ? [file.replace(/^~(?=[/\\])/, homedir())] : tokenPlaces(environment);
  for (const place of places) {
    const text = (await readFile(place, 'utf8').catch(() => '')).trim();
    if (TOKEN.test(text)) return text;
  }
  throw new NotRunning(`there is no token in ${places.join(' or ')}. The gateway writes it when it starts: run "toolwire serve".`);
}
