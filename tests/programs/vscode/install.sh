#!/bin/sh
# Install a real VS Code, the node it needs and what steers a browser into FOLDER, where package.json and its lock lie: install.sh FOLDER
set -e
cd "$1"
room=$(df -Pk . | awk 'NR == 2 { print $4 }')
if [ "$room" -lt 1500000 ]; then
    echo "$1 has room for $room KB; VS Code takes 1,500,000 while it is installed." >&2
    exit 1
fi
quiet="--silent --no-audit --no-fund"
npm ci $quiet --ignore-scripts # it runs without what its scripts would compile
npm rebuild $quiet node
PATH="$PWD/node_modules/.bin:$PATH"
for part in lib/vscode lib/vscode/extensions; do
    # Not npm ci, which finds a package missing in the lock that code-server ships.
    (cd "node_modules/code-server/$part" && npm install $quiet --ignore-scripts --omit=dev)
done
node node_modules/code-server/out/node/entry.js --version
