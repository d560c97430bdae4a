// Where VS Code starts the extension. These forms of import and export need no helpers in the bundle.
import vscode = require('vscode');
import { Bridge } from './bridge';

function activate(context: vscode.ExtensionContext): void {
  new Bridge(vscode, context);
}

export = { activate };
