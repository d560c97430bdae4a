// What went wrong in VS Code, in the words of a frame.
import type * as vscode from 'vscode';
import type { Fault } from './frames';
import { member } from './parts';

const LONGEST = 4000;

/** error is whatever was thrown: VS Code rejects with a plain object where it could not decode an image. */
export function faultOf(api: typeof vscode, error: unknown): Fault {
  const code = member(error, 'code');
  const isCoded = error instanceof api.LanguageModelError || typeof code === 'string' || typeof code === 'number';
  const cause = word(member(member(error, 'cause'), 'message'));
  const message = messageOf(error) + (cause && `: ${cause}`);
  return { code: (isCoded && word(code)) || 'Unknown', name: word(member(error, 'name')), message: message.slice(0, LONGEST) };
}

/** For an error with which sendRequest rejects. VS Code asks its user there, before the provider sees the request; whatever
 * comes from the stream is the provider's, which may give NoPermissions too. */
export function rejectionOf(api: typeof vscode, error: unknown): Fault {
  const fault = faultOf(api, error);
  return fault.code === 'NoPermissions' ? { ...fault, refused_by_user: true } : fault;
}

/** The error that VS Code shows for a request that the gateway refused. */
export function errorOf(api: typeof vscode, fault: Fault): Error {
  switch (fault.code) {
    case 'NoPermissions':
      return api.LanguageModelError.NoPermissions(fault.message);
    case 'Blocked':
      return api.LanguageModelError.Blocked(fault.message);
    case 'NotFound':
      return api.LanguageModelError.NotFound(fault.message);
    default:
      return new Error(fault.message);
  }
}

function messageOf(error: unknown): string {
  if (typeof error === 'string') return error;
  const message = word(member(error, 'message'));
  if (message) return message;
  return typeof member(error, 'isTrusted') === 'boolean'
    ? 'an image could not be decoded (VS Code gave an event and no error)'
    : 'VS Code gave no reason';
}

function word(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, LONGEST) : '';
}
