import { describe, expect, test } from "vitest";
import { tokens } from "../src/tokens.ts";

const kinds = (layer: string, text: string) =>
  tokens(layer, text)
    .filter(({ kind }) => kind !== "plain")
    .map(({ kind, text: part }) => `${kind}:${part}`);

describe("a line is coloured", () => {
  test("tensor IR", () =>
    expect(kinds("ir", "%3 = exp %2 : f32[rows, columns]")).toEqual([
      "value:%3",
      "value:%2",
      "type:f32[rows, columns]",
    ]));
  test("Python", () =>
    expect(kinds("source", 'return f(x, "a # b", 1e-5)  # why')).toEqual([
      "keyword:return",
      'string:"a # b"',
      "number:1e-5",
      "comment:# why",
    ]));
  test("LLVM", () =>
    expect(kinds("llvm", "  %x = load <16 x float>, ptr %p ; row")).toEqual([
      "value:%x",
      "keyword:load",
      "type:<16 x float>",
      "type:ptr",
      "value:%p",
      "comment:; row",
    ]));
  test("a string that does not end", () => expect(kinds("source", "x = 'abc")).toEqual(["string:'abc"]));
});

test("nothing of the text is lost", () => {
  for (const text of ["", "   ", "a\tb", "x = '\\'' + 1", "λ ≤ 🙂 # ok"]) {
    expect(
      tokens("source", text)
        .map((token) => token.text)
        .join(""),
    ).toBe(text);
  }
});
