// A WebSocket server for tests: one port of this machine, and just enough of the protocol.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { bridgeUrl } from '../src/place';
import type { Place } from '../src/place';

export class TestServer {
  readonly requests: IncomingMessage[] = [];
  readonly sockets: Duplex[] = [];
  heard: string[] = [];
  refusal: { status: string; body: string } | undefined;
  private readonly server: Server;

  constructor() {
    this.server = createServer((_request, response) => response.writeHead(404).end());
    this.server.on('upgrade', (request, socket) => this.upgrade(request, socket));
  }
  async start(): Promise<Place> {
    await new Promise<void>(resolve => this.server.listen(0, '127.0.0.1', resolve));
    return { url: bridgeUrl(`http://127.0.0.1:${(this.server.address() as AddressInfo).port}`), token: 'secret' };
  }
  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise(resolve => this.server.close(resolve));
  }
  say(text: string): void {
    const data = Buffer.from(text);
    this.sockets.at(-1)!.write(Buffer.concat([Buffer.from([0x81, data.length]), data]));
  }
  close(code: number, reason: string): void {
    const data = Buffer.from(reason);
    this.sockets.at(-1)!.end(Buffer.concat([Buffer.from([0x88, data.length + 2, code >> 8, code & 255]), data]));
  }
  private upgrade(request: IncomingMessage, socket: Duplex): void {
    this.requests.push(request);
    socket.on('error', () => {});
    if (this.refusal) {
      const { status, body } = this.refusal;
      return void socket.end(`HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);
    }
    this.sockets.push(socket);
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
    let data = Buffer.alloc(0);
    socket.on('data', more => {
      data = Buffer.concat([data, more]);
      data = this.read(data);
    });
  }
  /** Whole frames are heard; the rest is given back. */
  private read(data: Buffer): Buffer<ArrayBuffer> {
    for (;;) {
      const short = (data[1] ?? 0) & 127;
      const head = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (data.length < head + 4) return Buffer.from(data);
      const length = short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
      if (data.length < head + 4 + length) return Buffer.from(data);
      const mask = data.subarray(head, head + 4);
      const text = data.subarray(head + 4, head + 4 + length).map((byte, index) => byte ^ mask[index % 4]!);
      if ((data[0]! & 15) === 1) this.heard.push(Buffer.from(text).toString());
      data = data.subarray(head + 4 + length);
    }
  }
}
