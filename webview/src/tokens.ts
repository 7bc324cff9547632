// Light colouring of one line of any layer: names, numbers, strings, comments, keywords and types. It is a reading aid, not
// a parser: what it does not know stays plain text, and it never looks beyond the line.

export type TokenKind = "comment" | "string" | "number" | "keyword" | "type" | "value" | "plain";
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const PATTERNS: readonly (readonly [TokenKind, string])[] = [
  ["string", String.raw`"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?`],
  ["value", String.raw`[%@$][A-Za-z0-9_.\-]+`],
  [
    "type",
    String.raw`\b(?:f16|bf16|f32|f64|i1|i8|i16|i32|i64|u8|bool|ptr|float|double|half|void|int)\b(?:\[[^\]]*\])?|<\d+ x [a-z0-9]+>`,
  ],
  ["number", String.raw`\b(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b`],
  [
    "keyword",
    String.raw`\b(?:def|return|if|elif|else|for|in|while|with|as|import|from|class|lambda|not|and|or|is|None|True|False|assert|raise|try|except|parallel|vector|unroll|define|call|br|ret|load|store|phi|fmul|fadd|fsub|fdiv|icmp|getelementptr|tail|align|label|kernel)\b`,
  ],
];
const COMMENTS: Readonly<Record<string, string>> = {
  llvm: ";.*",
  asm: "(?:#|;|//).*",
  source: "#.*",
  cst: "#.*",
};
const compiled = new Map<string, RegExp>();

export function tokens(layer: string, text: string): Token[] {
  const found: Token[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern(layer))) {
    if (match.index > end) found.push({ kind: "plain", text: text.slice(end, match.index) });
    const kind = Object.entries(match.groups!).find(([, group]) => group !== undefined)![0] as TokenKind;
    found.push({ kind, text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ kind: "plain", text: text.slice(end) });
  return found;
}

function pattern(layer: string): RegExp {
  let regexp = compiled.get(layer);
  if (!regexp) {
    const comment = COMMENTS[layer];
    // Strings come before comments, so that a "#" inside one does not start a comment.
    const kinds = comment ? [PATTERNS[0]!, ["comment", comment] as const, ...PATTERNS.slice(1)] : PATTERNS;
    regexp = new RegExp(kinds.map(([kind, source]) => `(?<${kind}>${source})`).join("|"), "g");
    compiled.set(layer, regexp);
  }
  return regexp;
}
