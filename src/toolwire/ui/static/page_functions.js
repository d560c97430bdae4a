// Functions of the page that can answer a tool call in the playground. They are fixed: no text is ever executed.

export const FUNCTIONS = {
  echo: { title: "Echo the arguments", run: (given) => given },
  clock: { title: "Current time", run: () => ({ time: new Date().toISOString() }) },
  calculator: { title: "Calculate an expression", run: (given) => calculation(given) },
  weather: { title: "Invented weather", run: (given) => weather(given) },
  random: { title: "Random number from 1 to 100", run: () => ({ number: 1 + Math.floor(Math.random() * 100) }) },
  failure: { title: "Fail with an error", run: () => ({ error: "The tool failed on purpose." }) },
};

/** Tools to start with, and the function that answers each. */
export const EXAMPLES = {
  get_weather: { answer: "weather", tool: tool("get_weather", "The weather in a city.", { city: { type: "string" }, unit: { type: "string", enum: ["celsius", "fahrenheit"] } }, ["city"]) },
  calculate: { answer: "calculator", tool: tool("calculate", "Calculates an arithmetic expression, such as (2 + 3) * 4.", { expression: { type: "string" } }, ["expression"]) },
  current_time: { answer: "clock", tool: tool("current_time", "The current time in UTC.", {}, []) },
};

/** The text of a template in which {{name}} is the argument of that name. */
export function fillTemplate(template, given) {
  return template.replace(/\{\{\s*([\w.]+)\s*\}\}/g, (whole, name) => {
    const value = name.split(".").reduce((at, key) => (at === null || at === undefined ? undefined : at[key]), given);
    return value === undefined ? whole : typeof value === "string" ? value : JSON.stringify(value);
  });
}

function tool(name, description, properties, required) {
  return { type: "function", function: { name, description, parameters: { type: "object", properties, required, additionalProperties: false } } };
}

function weather(given) {
  const city = String(given.city ?? given.location ?? "here");
  const seed = [...city].reduce((sum, letter) => sum + letter.codePointAt(0), 0);
  return { city, temperature: 5 + (seed % 24), unit: given.unit || "celsius", sky: ["sunny", "cloudy", "rain"][seed % 3] };
}

function calculation(given) {
  const text = String(given.expression ?? Object.values(given)[0] ?? "");
  try {
    return { result: calculate(text) };
  } catch (fault) {
    return { error: fault.message };
  }
}

/** + - * / % ^ and parentheses, by recursive descent. */
export function calculate(text) {
  const tokens = text.match(/\d+(?:\.\d+)?|[-+*/%^()]/g) || [];
  if (tokens.join("") !== text.replace(/\s+/g, "")) throw new Error(`Cannot calculate: ${text.slice(0, 80)}`);
  let place = 0;
  const take = (...wanted) => (wanted.includes(tokens[place]) ? tokens[place++] : null);
  const sum = () => {
    let value = product();
    for (let sign = take("+", "-"); sign; sign = take("+", "-")) value = sign === "+" ? value + product() : value - product();
    return value;
  };
  const product = () => {
    let value = power();
    for (let sign = take("*", "/", "%"); sign; sign = take("*", "/", "%")) {
      const right = power();
      value = sign === "*" ? value * right : sign === "/" ? value / right : value % right;
    }
    return value;
  };
  const power = () => {
    const base = unary();
    return take("^") ? base ** power() : base;
  };
  const unary = () => {
    if (take("-")) return -unary();
    if (take("(")) {
      const value = sum();
      if (!take(")")) throw new Error("A parenthesis is not closed.");
      return value;
    }
    const value = Number(tokens[place++]);
    if (Number.isNaN(value)) throw new Error(`Cannot calculate: ${text.slice(0, 80)}`);
    return value;
  };
  const value = sum();
  if (place < tokens.length || tokens.length > 500) throw new Error(`Cannot calculate: ${text.slice(0, 80)}`);
  return value;
}
