// The connection to the gateway, for as long as the window lives: dialled, greeted, and dialled again when it is lost.
import { decode, encode, MAX_FRAME, VERSION } from './frames';
import type { FromGateway, FromWindow, Hello, Wire } from './frames';
import { NotRunning } from './place';
import type { Place } from './place';
import type { Events, Socket } from './socket';

const FIRST = 500; // milliseconds until the second attempt; doubled with each that fails
const LAST = 30_000;
const GREETING = 10_000; // milliseconds for the gateway's welcome
const SILENCE = 45_000; // milliseconds without a word of the gateway, which pings every 15 s
const STEADY = 5000; // milliseconds after which a connection was a good one

export type State =
  | { kind: 'connecting' }
  | { kind: 'connected'; gateway: string }
  | { kind: 'waiting'; why: string; seconds: number; isDown?: true } // isDown: no gateway runs there
  | { kind: 'stopped' };

/** What a link needs of the world around it. */
export interface World {
  place(): Promise<Place>;
  dial(place: Place, events: Events): Socket;
  reason(place: Place): Promise<string | NotRunning>;
  hello(): Hello;
  heard(frame: FromGateway): void;
  /** What was connected is no more. */
  lost(): void;
  changed(state: State): void;
  log(words: string): void;
  random(): number;
}

export class Link implements Wire {
  state: State = { kind: 'stopped' };
  private socket: Socket | undefined;
  private attempt = 0; // numbers the attempts: whatever an older one still says is not heard
  private failures = 0;
  private since = 0; // when it was welcomed
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly world: World) {}

  get isOpen(): boolean {
    return this.state.kind === 'connected';
  }

  get buffered(): number {
    return this.socket?.bufferedAmount ?? 0;
  }

  send(frame: FromWindow): boolean {
    return this.isOpen && this.write(frame);
  }

  /** Dial, or dial anew, without waiting. */
  connect(): void {
    this.leave();
    this.failures = 0;
    void this.dial();
  }

  /** Do not wait any longer: something may have changed. */
  hurry(): void {
    if (this.state.kind === 'waiting') this.connect();
  }

  stop(): void {
    this.leave();
    this.change({ kind: 'stopped' });
  }

  private async dial(): Promise<void> {
    const attempt = ++this.attempt;
    this.change({ kind: 'connecting' });
    let place: Place | undefined;
    try {
      place = await this.world.place();
      if (attempt !== this.attempt) return;
      this.socket = this.world.dial(place, this.events(attempt, place));
      this.timer = setTimeout(() => this.fail(attempt, 'the gateway did not answer the greeting.'), GREETING);
    } catch (error) {
      this.fail(attempt, error instanceof Error ? error : String(error));
    }
  }

  private events(attempt: number, place: Place): Events {
    let isOpen = false;
    return {
      opened: () => {
        isOpen = true;
        if (attempt === this.attempt) this.write(this.world.hello());
      },
      heard: text => {
        if (attempt === this.attempt) this.take(attempt, text);
      },
      closed: (code, reason) => {
        if (attempt !== this.attempt) return;
        if (isOpen) this.fail(attempt, reason ? `the gateway closed the connection: ${reason}` : `the connection was lost (${code}).`);
        else void this.world.reason(place).then(why => this.fail(attempt, why));
      },
    };
  }

  private take(attempt: number, text: string): void {
    const frame = decode(text);
    if (!frame) return this.world.log('the gateway sent what is no frame; it is ignored.');
    if (frame.type !== 'welcome') {
      if (!this.isOpen) return;
      this.listen(attempt);
      return this.world.heard(frame);
    }
    if (frame.v !== VERSION) return this.fail(attempt, `the gateway speaks version ${frame.v}, this extension ${VERSION}: run "toolwire vscode install".`);
    this.listen(attempt);
    this.since = Date.now();
    this.change({ kind: 'connected', gateway: String(frame.gateway) });
    this.world.heard(frame);
  }

  /** Until the next frame, but not for ever: a connection may be dead without anybody saying so. */
  private listen(attempt: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fail(attempt, 'the gateway says nothing.'), SILENCE);
  }

  private fail(attempt: number, reason: string | Error): void {
    if (attempt !== this.attempt) return;
    if (this.isOpen && Date.now() - this.since >= STEADY) this.failures = 0;
    this.leave();
    const wait = Math.min(LAST, FIRST * 2 ** this.failures++) * (0.5 + this.world.random() / 2);
    const why = typeof reason === 'string' ? reason : reason.message;
    this.change({ kind: 'waiting', why, seconds: wait / 1000, ...(reason instanceof NotRunning ? { isDown: true } : {}) });
    this.timer = setTimeout(() => void this.dial(), wait);
  }

  private leave(): void {
    this.attempt++;
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = undefined;
    const wasOpen = this.isOpen;
    this.state = { kind: 'stopped' };
    socket?.close();
    if (wasOpen) this.world.lost();
  }

  private write(frame: FromWindow): boolean {
    const text = encode(frame);
    if (!this.socket || Buffer.byteLength(text) > MAX_FRAME) return false;
    this.socket.send(text);
    return true;
  }

  private change(state: State): void {
    this.state = state;
    this.world.changed(state);
  }
}
