// The extension without its first line of life: takes the API as a parameter, so that tests can give it another one.
import type * as vscode from 'vscode';
import { AccountHint } from './account';
import { askFor, wanted } from './consent';
import type { Outcome } from './consent';
import type { FromGateway, Hello } from './frames';
import { VERSION } from './frames';
import { Gateway, MACHINE } from './gateway';
import type { Machine } from './gateway';
import { keyOf, Lender, OWN } from './lending';
import { Link } from './link';
import type { State, World } from './link';
import { Offering } from './offering';
import { findPlace, findUrl } from './place';
import { dial, reasonOf } from './socket';
import { Status } from './status';

const SETTLING = 200; // milliseconds: changes of models come in bursts

export type Around = Pick<World, 'dial' | 'reason' | 'random'> & { environment: Record<string, string | undefined>; machine: Machine };
export const AROUND: Around = { dial, reason: reasonOf, random: Math.random, environment: process.env, machine: MACHINE };

export class Bridge {
  // Not env.sessionId, which is the same in all windows where telemetry is off.
  private readonly window = crypto.randomUUID();
  private readonly log: vscode.LogOutputChannel;
  private readonly status: Status;
  private readonly link: Link;
  private readonly lender: Lender;
  private readonly offering: Offering;
  private readonly accountHint: AccountHint;
  private readonly gateway: Gateway;
  private readonly keys = new Map<string, boolean>(); // by which VS Code shows commands
  private isStarting = false;
  private readonly denied = new Map<string, vscode.LanguageModelChat>();
  private readonly unknown = new Set<string>();
  private isAsking = false;
  private page: Thenable<void> | undefined;
  private settling: NodeJS.Timeout | undefined;

  constructor(private readonly api: typeof vscode, private readonly context: vscode.ExtensionContext, private readonly around: Around = AROUND) {
    this.log = api.window.createOutputChannel('Toolwire', { log: true });
    this.status = new Status(api, this.log);
    this.gateway = new Gateway(around.machine, context.globalState, around.environment, line => this.log.info(`gateway: ${line}`));
    this.link = new Link({
      ...around,
      place: async () => (await this.answers(), findPlace(this.settings(), around.environment)),
      hello: () => this.hello(),
      heard: frame => this.take(frame),
      lost: () => this.lost(),
      changed: () => this.show(),
      log: words => this.log.warn(words),
    });
    this.lender = new Lender(api, this.link, {
      log: words => this.log.warn(words),
      denied: model => this.refused(model),
      allowed: model => void (this.denied.delete(keyOf(model)) && this.show()),
    });
    this.offering = new Offering(api, this.link);
    this.accountHint = new AccountHint(api, context.globalState);
    context.subscriptions.push(this.log, this.status, { dispose: () => this.stop() }, ...this.subscriptions());
    this.look();
    this.link.connect();
  }

  get state(): State {
    return this.link.state;
  }

  private subscriptions(): vscode.Disposable[] {
    const { api, link } = this;
    return [
      api.lm.registerLanguageModelChatProvider(OWN, this.offering),
      api.lm.onDidChangeChatModels(() => this.settle()),
      api.window.onDidChangeWindowState(({ focused }) => this.focus(focused)),
      api.workspace.onDidChangeConfiguration(change => {
        if (!change.affectsConfiguration('toolwire')) return;
        this.look();
        link.connect();
      }),
      api.commands.registerCommand('toolwire.startGateway', () => this.startGateway()),
      api.commands.registerCommand('toolwire.stopGateway', () => this.stopGateway()),
      api.commands.registerCommand('toolwire.consent', () => this.consent()),
      api.commands.registerCommand('toolwire.reconnect', () => link.connect()),
      api.commands.registerCommand('toolwire.withoutAccount', () => this.accountHint.explain()),
      api.commands.registerCommand('toolwire.showLog', () => this.log.show()),
    ];
  }

  private settings(): { url: string; tokenFile: string; program: string } {
    const settings = this.api.workspace.getConfiguration('toolwire');
    return { url: settings.get('url', ''), tokenFile: settings.get('tokenFile', ''), program: settings.get('program', '') };
  }

  private look(): void {
    void this.gateway.look(this.settings().program.trim()).then(() => this.show());
  }

  private async startGateway(): Promise<void> {
    const { window } = this.api;
    if (this.isStarting || this.link.isOpen) return;
    this.isStarting = true;
    try {
      const ended = this.gateway.start(findUrl(this.settings(), this.around.environment));
      this.link.connect(); // and again until it is there
      const why = await ended;
      if (!this.link.isOpen) void window.showErrorMessage(`Toolwire: the gateway does not run: ${why}`);
    } catch (error) {
      void window.showErrorMessage(`Toolwire: the gateway cannot be started: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.isStarting = false;
    }
  }

  private stopGateway(): void {
    if (this.gateway.canStop) this.gateway.stop();
    else void this.api.window.showInformationMessage('Toolwire: this gateway was not started from VS Code; stop it where it was started.');
  }

  private hello(): Hello {
    const { api } = this;
    const copilot = api.extensions.getExtension('GitHub.copilot-chat')?.packageJSON.version;
    const folder = api.workspace.name;
    return {
      type: 'hello', v: VERSION, window: this.window, vscode: api.version,
      extension: String(this.context.extension.packageJSON.version), focused: api.window.state.focused,
      ...(copilot ? { copilot: String(copilot) } : {}),
      ...(folder ? { folder } : {}),
    };
  }

  private take(frame: FromGateway): void {
    try {
      this.heard(frame);
    } catch (error) {
      this.log.warn(`a frame of the type "${frame.type}" is not as it should be: ${String(error)}`);
    }
  }

  private heard(frame: FromGateway): void {
    switch (frame.type) {
      case 'welcome':
        this.gateway.greeted(frame);
        this.link.send({ type: 'list' });
        return this.list(true);
      case 'chat':
        return void this.lender.chat(frame);
      case 'cancel':
        return this.lender.cancel(frame.id);
      case 'count':
        return void this.lender.count(frame);
      case 'refresh':
        return this.list(true);
      case 'ping':
        return void this.answers().then(() => this.link.send({ type: 'pong', n: frame.n }));
      case 'offer':
        if (frame.models.length) void this.accountHint.offer();
        return this.offering.take(frame);
      case 'parts':
      case 'end':
      case 'error':
        return this.offering.hear(frame);
      default:
        this.noteUnknown(frame);
    }
  }

  /** When the page of this window has answered: the host of extensions lives on for hours behind one that crashed. */
  private answers(): Thenable<void> {
    const over = () => void (this.page = undefined);
    return (this.page ??= this.api.commands.executeCommand('setContext', 'toolwire.alive', true).then(over, over));
  }

  private noteUnknown(frame: { type: string }): void {
    const type = frame.type.slice(0, 100);
    if (this.unknown.has(type) || this.unknown.size >= 20) return;
    this.unknown.add(type);
    this.log.warn(`the gateway sent a frame of the type "${type}", which this version does not know.`);
  }

  private list(isWanted: boolean): void {
    this.lender.list(isWanted).then(
      () => {
        const lent = new Set(this.lender.lent.map(keyOf));
        for (const key of this.denied.keys()) if (!lent.has(key)) this.denied.delete(key);
        this.show();
      },
      error => this.log.warn(`the models cannot be listed: ${String(error)}`),
    );
  }

  private settle(): void {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.list(false), SETTLING);
  }

  private focus(focused: boolean): void {
    this.link.send({ type: 'focus', focused });
    if (focused) this.link.hurry();
  }

  private refused(model: vscode.LanguageModelChat): void {
    this.denied.set(keyOf(model), model);
    this.show();
    void this.offerConsent(model);
  }

  private async offerConsent(model: vscode.LanguageModelChat): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    const again = 'Ask me again';
    const chosen = await this.api.window.showWarningMessage(`Toolwire was not allowed to use ${model.name}.`, again);
    this.isAsking = false;
    if (chosen === again) await this.consent();
  }

  private async consent(): Promise<void> {
    const { window } = this.api;
    const models = wanted(this.lender.lent, [...this.denied.values()]);
    if (!models.length) return void window.showInformationMessage('Toolwire: this window has no models to ask for. Sign in to Copilot, or add a provider.');
    const outcomes = await askFor(this.api, models);
    const allowed = outcomes.filter(({ isRefused }) => !isRefused);
    for (const { model } of allowed) this.denied.delete(keyOf(model));
    const refused = outcomes.filter(({ isRefused }) => isRefused);
    const failed = allowed.filter(({ why }) => why);
    if (refused.length) void window.showWarningMessage(`Toolwire may not use ${reasons(refused)}.`);
    else if (failed.length) void window.showWarningMessage(`Toolwire may use these models, but they failed: ${reasons(failed)}.`);
    else void window.showInformationMessage(`Toolwire may use ${models.map(model => model.name).join(', ')}.`);
    // The same list once more tells the gateway that what was refused may be asked again; only then is it shown.
    if (allowed.length) this.list(true);
  }

  private lost(): void {
    this.gateway.greeted(undefined);
    this.lender.abandon();
    this.offering.abandon();
  }

  private show(): void {
    const { canStart, canStop } = this.gateway;
    this.status.show(this.link.state, this.lender.lent.length, [...this.denied.values()].map(model => model.name), { start: canStart, stop: canStop });
    this.tell('toolwire.canStart', canStart);
    this.tell('toolwire.canStop', canStop);
  }

  private tell(key: string, value: boolean): void {
    if (this.keys.get(key) === value) return;
    this.keys.set(key, value);
    void this.api.commands.executeCommand('setContext', key, value);
  }

  private stop(): void {
    clearTimeout(this.settling);
    this.link.stop();
  }
}

function reasons(outcomes: readonly Outcome[]): string {
  return outcomes.map(({ model, why }) => `${model.name} (${why})`).join(', ');
}
