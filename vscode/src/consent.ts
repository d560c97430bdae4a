// Consent: VS Code asks the user when a model is used for the first time, so a tiny request is sent while the user looks.
import type * as vscode from 'vscode';
import { faultOf, rejectionOf } from './faults';
import type { Fault } from './frames';

export const WHY = 'toolwire lends this model to the programs on this machine that you connect to its gateway.';
type Model = vscode.LanguageModelChat;

/** why is empty where the model answered; a request that failed otherwise than by the user's refusal was allowed. */
export interface Outcome { model: Model; why: string; isRefused: boolean }

/** The models to ask for: those that were refused, otherwise one of each vendor. */
export function wanted(lent: readonly Model[], denied: readonly Model[]): Model[] {
  if (denied.length) return [...denied];
  return [...new Map([...lent].reverse().map(model => [model.vendor, model])).values()].reverse();
}

/** One after the other, as each may open a dialog. */
export async function askFor(api: typeof vscode, models: readonly Model[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const model of models) outcomes.push({ model, ...(await attempt(api, model)) });
  return outcomes;
}

async function attempt(api: typeof vscode, model: Model): Promise<Omit<Outcome, 'model'>> {
  const source = new api.CancellationTokenSource();
  let fault = (error: unknown): Fault => rejectionOf(api, error);
  try {
    const message = api.LanguageModelChatMessage.User('Answer with one word: yes.');
    const response = await model.sendRequest([message], { justification: WHY }, source.token);
    fault = error => faultOf(api, error);
    for await (const _ of response.stream) source.cancel(); // its first word is enough
    return { why: '', isRefused: false };
  } catch (error) {
    if (source.token.isCancellationRequested) return { why: '', isRefused: false };
    const { message, refused_by_user: isRefused = false } = fault(error);
    return { why: message, isRefused };
  } finally {
    source.dispose();
  }
}
