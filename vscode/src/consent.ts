// Consent: VS Code asks the user when a model is used for the first time, so a tiny request is sent while the user looks.
import type * as vscode from 'vscode';
import { faultOf } from './faults';

export const WHY = 'toolwire lends this model to the programs on this machine that you connect to its gateway.';
type Model = vscode.LanguageModelChat;

export interface Outcome { model: Model; why: string }

/** The models to ask for: those that were refused, otherwise one of each vendor. */
export function wanted(lent: readonly Model[], denied: readonly Model[]): Model[] {
  if (denied.length) return [...denied];
  return [...new Map([...lent].reverse().map(model => [model.vendor, model])).values()].reverse();
}

/** One after the other, as each may open a dialog. why is empty where the model may be used. */
export async function askFor(api: typeof vscode, models: readonly Model[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const model of models) outcomes.push({ model, why: await attempt(api, model) });
  return outcomes;
}

async function attempt(api: typeof vscode, model: Model): Promise<string> {
  const source = new api.CancellationTokenSource();
  try {
    const message = api.LanguageModelChatMessage.User('Answer with one word: yes.');
    const response = await model.sendRequest([message], { justification: WHY }, source.token);
    for await (const _ of response.stream) source.cancel(); // its first word is enough
    return '';
  } catch (error) {
    return source.token.isCancellationRequested ? '' : faultOf(api, error).message;
  } finally {
    source.dispose();
  }
}
