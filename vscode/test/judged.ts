// Frames judged by protocol.schema.json: a test that sends one which is not in it fails.
import { Ajv2020 } from 'ajv/dist/2020';
import assert from 'node:assert/strict';
import type { FromGateway, FromWindow, Wire } from '../src/frames';
import { encode } from '../src/frames';
import schema from '../protocol.schema.json';

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema(schema, 'bridge');

function judge(side: 'FromWindow' | 'FromGateway', frame: unknown): void {
  const isGood = ajv.validate(`bridge#/$defs/${side}`, frame);
  assert.ok(isGood, `${JSON.stringify(frame).slice(0, 500)} is not in the schema: ${ajv.errorsText().slice(0, 500)}`);
}

export function judgedFromWindow(text: string): FromWindow {
  const frame = JSON.parse(text);
  judge('FromWindow', frame);
  return frame;
}

/** A frame of the gateway, which must be in the schema as well. */
export function fromGateway<F extends FromGateway>(frame: F): F {
  judge('FromGateway', frame);
  return frame;
}

/** Keeps what is sent, after judging it. */
export class JudgedWire implements Wire {
  isOpen = true;
  buffered = 0;
  readonly frames: FromWindow[] = [];

  send(frame: FromWindow): boolean {
    if (!this.isOpen) return false;
    this.frames.push(judgedFromWindow(encode(frame)));
    return true;
  }
  of<T extends FromWindow['type']>(type: T): Extract<FromWindow, { type: T }>[] {
    return this.frames.filter((frame): frame is Extract<FromWindow, { type: T }> => frame.type === type);
  }
  get text(): string {
    return this.of('parts').flatMap(frame => frame.parts).map(part => (part.t === 'text' ? part.text : '')).join('');
  }
}
