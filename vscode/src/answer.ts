// One answer on its way to the gateway: what comes in one tick leaves in one frame, and no frame grows too large.
import type { AnswerPart, Fault, Wire } from './frames';
import { MAX_FRAME } from './frames';

const FRAME = 1 << 18; // characters after which a frame leaves without waiting for the end of the tick
const LONGEST = MAX_FRAME - (1 << 16); // bytes of one part
const PIECE = 1 << 20; // characters of text in one part
const BUFFERED = 8 << 20; // bytes that the socket has not taken: the model is not read on
const PAUSE = 10; // milliseconds until the socket is looked at again

/** Over after the first of end, fail and drop; whatever is done to it then does nothing. */
export class Answer {
  isOver = false;
  private pending: AnswerPart[] = [];
  private size = 0;
  private seq = 0;
  private tick: NodeJS.Immediate | undefined;

  constructor(private readonly id: string, private readonly wire: Wire, private readonly most = BUFFERED) {}

  /** Raises RangeError for a part that no frame can hold. */
  add(part: AnswerPart): void {
    if (this.isOver || (part.t === 'text' && !part.text)) return;
    if (part.t === 'text' && part.text.length > PIECE) {
      for (const text of pieces(part.text)) this.add({ t: 'text', text });
      return;
    }
    const size = sizeOf(part);
    if (size > LONGEST) throw new RangeError(`a part of the answer takes ${size} bytes; ${LONGEST} is the most.`);
    if (this.size + size > FRAME) this.flush();
    if (!merged(this.pending.at(-1), part)) this.pending.push(part);
    this.size += size;
    if (this.size > FRAME) this.flush();
    else this.tick ??= setImmediate(() => this.flush());
  }

  /** Resolves when there is room for more. */
  async room(): Promise<void> {
    while (!this.isOver && this.wire.buffered > this.most) await new Promise(resolve => setTimeout(resolve, PAUSE));
  }

  end(): void {
    this.close(() => this.wire.send({ type: 'end', id: this.id, cancelled: false }));
  }

  fail(fault: Fault): void {
    this.close(() => this.wire.send({ type: 'error', id: this.id, ...fault }));
  }

  /** The gateway wants no more of it. */
  cancel(): void {
    this.drop(() => this.wire.send({ type: 'end', id: this.id, cancelled: true }));
  }

  /** Nobody is there to hear it. */
  drop(last: () => void = () => {}): void {
    this.pending = [];
    this.close(last);
  }

  private close(last: () => void): void {
    if (this.isOver) return;
    this.flush(true);
    this.isOver = true;
    last();
  }

  private flush(isLast = false): void {
    if (this.tick) clearImmediate(this.tick);
    this.tick = undefined;
    const half = isLast ? '' : cutHalf(this.pending);
    if (this.pending.length) this.wire.send({ type: 'parts', id: this.id, seq: this.seq++, parts: this.pending });
    this.pending = half ? [{ t: 'text', text: half }] : [];
    this.size = half.length;
  }
}

/** Take half a surrogate pair from the end of the text: its other half may come with the next part. */
function cutHalf(pending: AnswerPart[]): string {
  const last = pending.at(-1);
  if (last?.t !== 'text' || !isHigh(last.text.charCodeAt(last.text.length - 1))) return '';
  const half = last.text.slice(-1);
  last.text = last.text.slice(0, -1);
  if (!last.text) pending.pop();
  return half;
}

function merged(last: AnswerPart | undefined, part: AnswerPart): boolean {
  if (last?.t === 'text' && part.t === 'text') {
    last.text += part.text;
    return true;
  }
  // Whatever their ids: some servers give every piece of a thought another.
  if (last?.t === 'thinking' && part.t === 'thinking' && !last.meta && !part.meta) {
    last.text += part.text;
    return true;
  }
  return false;
}

function sizeOf(part: AnswerPart): number {
  switch (part.t) {
    case 'text':
      return part.text.length;
    case 'data':
      return part.data.length;
    default:
      return Buffer.byteLength(JSON.stringify(part));
  }
}

function* pieces(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE, text.length);
    if (end < text.length && isHigh(text.charCodeAt(end - 1))) end--;
    yield text.slice(start, end);
    start = end;
  }
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
