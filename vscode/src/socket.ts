// The socket to the gateway: the WebSocket of Node, and the reason when it does not open, which that one keeps to itself.
import { request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { randomBytes } from 'node:crypto';
import { NotRunning } from './place';
import type { Place } from './place';

const PARTING = 1000; // milliseconds in which an error must be followed by the close that explains it
const ANSWER = 5000; // milliseconds for a reason
const LONGEST = 500; // characters of a reason

export interface Events {
  opened(): void;
  heard(text: string): void;
  /** Once; code is 1006 where nobody said goodbye. */
  closed(code: number, reason: string): void;
}
export interface Socket {
  readonly bufferedAmount: number;
  send(text: string): void;
  close(): void;
}

export function dial(place: Place, events: Events): Socket {
  const socket = new WebSocket(place.url, { headers: { authorization: `Bearer ${place.token}` } });
  let isOpen = false;
  let isOver = false;
  const over = (code: number, reason: string) => {
    if (isOver) return;
    isOver = true;
    events.closed(code, reason);
  };
  socket.onopen = () => {
    isOpen = true;
    events.opened();
  };
  socket.onmessage = event => {
    if (typeof event.data === 'string') events.heard(event.data);
  };
  socket.onclose = event => over(event.code, event.reason);
  // Node 22 tells of a handshake that failed by an error alone; after an open socket's error its close follows.
  socket.onerror = () => {
    if (!isOpen) over(1006, '');
    else setTimeout(over, PARTING, 1006, '');
  };
  return socket;
}

/** Why a socket does not open: the same handshake once more, by hand. */
export function reasonOf(place: Place): Promise<string | NotRunning> {
  const { url, token } = place;
  const address = `http${url.protocol === 'wss:' ? 's' : ''}://${url.host}`;
  const headers = {
    authorization: `Bearer ${token}`, connection: 'Upgrade', upgrade: 'websocket',
    'sec-websocket-version': '13', 'sec-websocket-key': randomBytes(16).toString('base64'),
  };
  return new Promise(resolve => {
    const send = url.protocol === 'wss:' ? secure : plain;
    const request = send(`${address}${url.pathname}`, { headers, timeout: ANSWER, agent: false });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      resolve('the connection was lost.');
    });
    request.on('response', response => {
      let said = '';
      response.setEncoding('utf8').on('data', text => { said = (said + text).slice(0, LONGEST); });
      response.on('close', () => resolve(refusal(address, response.statusCode ?? 0, said.trim())));
    });
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', error => resolve(unreachable(address, error)));
    request.end();
  });
}

function refusal(address: string, status: number, said: string): string {
  if (status === 404) return `what answers at ${address} is no toolwire gateway, or one without a bridge.`;
  return `the gateway at ${address} refuses this window (${status})${said ? `: ${said}` : '.'}`;
}

function unreachable(address: string, error: Error): string | NotRunning {
  const code = 'code' in error ? String(error.code) : error.message;
  return code === 'ECONNREFUSED'
    ? new NotRunning(`no gateway runs at ${address}. Start it with "toolwire serve".`)
    : `the gateway at ${address} cannot be reached: ${code}.`;
}
