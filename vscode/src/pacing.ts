// Parts of an answer for VS Code, at a pace that it shows at once: it holds back parts that come less than 30 ms apart.
import type { AnswerPart } from './frames';

const APART = 40; // milliseconds

export class Pacer {
  private pending: AnswerPart[] = [];
  private timer: NodeJS.Timeout | undefined;
  private reportedAt = -Infinity;

  constructor(private readonly report: (part: AnswerPart) => void, private readonly now = () => performance.now()) {}

  add(parts: readonly AnswerPart[]): void {
    for (const part of parts) {
      const last = this.pending.at(-1);
      if (last?.t === 'text' && part.t === 'text') last.text += part.text;
      else this.pending.push({ ...part });
    }
    const wait = Math.ceil(this.reportedAt + APART - this.now());
    if (wait <= 0) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), wait);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const parts = this.pending;
    this.pending = [];
    if (parts.length) this.reportedAt = this.now();
    for (const part of parts) this.report(part);
  }

  drop(): void {
    this.pending = [];
    this.flush();
  }
}
