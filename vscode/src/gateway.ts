// Starts the gateway where the program `toolwire` is installed, and stops a gateway that a window has started.
import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import type * as vscode from 'vscode';
import type { Welcome } from './frames';
import type { Environment } from './place';

const MARK = 'toolwire.gatewayMark'; // in the memory that all windows share
const VARIABLE = 'TOOLWIRE_STARTED_BY'; // the gateway repeats it in its welcome
const LONGEST = 1000; // characters of a line of its output

/** What is needed of the machine. */
export interface Machine {
  find(setting: string, environment: Environment): Promise<string | undefined>;
  /** The program runs on when the window closes. Resolves with the reason when it ends. */
  launch(program: string, words: readonly string[], environment: Environment, heard: (line: string) => void): Promise<string>;
  end(pid: number): void;
}
export const MACHINE: Machine = { find: findProgram, launch, end: pid => void process.kill(pid) };

export class Gateway {
  private program: string | undefined;
  private welcome: Welcome | undefined;

  constructor(
    private readonly machine: Machine, private readonly memory: vscode.Memento,
    private readonly environment: Environment, private readonly log: (line: string) => void,
  ) {}

  get canStart(): boolean {
    return this.program !== undefined && !this.welcome;
  }

  /** Only what a window of this user has started: no other process knows its mark. */
  get canStop(): boolean {
    const mark = this.memory.get(MARK);
    return Boolean(this.welcome?.pid && mark && this.welcome.started_by === mark);
  }

  async look(setting: string): Promise<void> {
    this.program = await this.machine.find(setting, this.environment);
  }

  /** undefined: the connection is lost. */
  greeted(welcome: Welcome | undefined): void {
    this.welcome = welcome;
  }

  /** Resolves with the reason when the program has ended. Throws where it cannot be started for this address. */
  async start(bridge: URL): Promise<string> {
    if (!this.program) throw new Error('the program toolwire is not installed on this machine.');
    const words = wordsFor(bridge);
    const mark = crypto.randomUUID();
    await this.memory.update(MARK, mark);
    return this.machine.launch(this.program, words, { ...inherited(this.environment), [VARIABLE]: mark }, this.log);
  }

  stop(): void {
    if (this.canStop && this.welcome?.pid) this.machine.end(this.welcome.pid);
  }
}

/** Its arguments, so that it listens where this window looks for it. */
export function wordsFor(bridge: URL): string[] {
  if (bridge.protocol !== 'ws:' || bridge.pathname !== '/bridge') {
    throw new Error(`a gateway at ${bridge.host}${bridge.pathname.replace(/\/bridge$/, '')} has something in front of it; start it by hand.`);
  }
  const host = bridge.hostname.replace(/^\[|\]$/g, '');
  return ['serve', ...(host === 'localhost' ? [] : ['--host', host]), '--port', bridge.port || '80'];
}

/** The setting's, else the first on the PATH or where installers put it: a VS Code started from a desktop has a short PATH. */
export async function findProgram(
  setting: string, environment: Environment, platform: string = process.platform, home = homedir(),
): Promise<string | undefined> {
  const name = platform === 'win32' ? 'toolwire.exe' : 'toolwire';
  const folders = [...(environment.PATH ?? '').split(delimiter), join(home, '.local', 'bin'), '/opt/homebrew/bin', '/usr/local/bin'];
  const places = setting ? [setting.replace(/^~(?=[/\\])/, home)] : folders.filter(Boolean).map(folder => join(folder, name));
  for (const place of places) {
    const isThere = await access(place, constants.X_OK).then(() => true, () => false);
    if (isThere) return place;
  }
  return undefined;
}

/** Without what VS Code has set for itself. */
function inherited(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !/^(VSCODE_|ELECTRON_|NODE_OPTIONS$)/.test(name)));
}

/** Not in the folder of the workspace, whose toolwire.toml may be a stranger's. */
function launch(program: string, words: readonly string[], environment: Environment, heard: (line: string) => void): Promise<string> {
  const child = spawn(program, words, { cwd: homedir(), env: environment, detached: true, windowsHide: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let last = 'it wrote nothing';
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => heard((last = line.slice(0, LONGEST))));
  }
  return new Promise(resolve => {
    child.on('error', error => resolve(error.message));
    child.on('close', (code, signal) => resolve(`it ended with ${code ?? signal}: ${last}`));
  });
}
