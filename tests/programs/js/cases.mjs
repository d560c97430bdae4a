// What the scripts beside this file share: their task, two tools, and the report of what each case came to.
// The task is a file of JSON named on the command line.
import { readFileSync, writeFileSync } from 'node:fs';

export const task = JSON.parse(readFileSync(process.argv[2], 'utf8'));

export const tools = {
  read_file: ({ path }) => readFileSync(path, 'utf8'),
  write_file: ({ path, content }) => {
    writeFileSync(path, content);
    return `wrote ${path}`;
  },
};

const schema = (...names) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
  additionalProperties: false,
});

export const described = [
  { name: 'read_file', description: 'Read a file.', parameters: schema('path') },
  { name: 'write_file', description: 'Write a file.', parameters: schema('path', 'content') },
];

// Runs the cases that the task has a prompt for; a case is a function from the prompt to the last text.
export async function main(cases) {
  const told = {};
  for (const [name, prompt] of Object.entries(task.prompts)) {
    try {
      told[name] = cases[name] ? { text: await cases[name](prompt) } : { error: 'no such case' };
    } catch (error) {
      told[name] = { error: String(error?.stack ?? error).slice(0, 1200) };
    }
  }
  console.log(JSON.stringify(told));
  process.exit(0);
}
