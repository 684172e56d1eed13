import { WrittenJson } from './reply.ts'

/** An answer as JSON text that leaves only its own time open. */
export interface WrittenText {
  readonly before: string
  readonly after: string
  /** The last instant at which the text is true. */
  readonly until: string
}

/** Answers that are written once for the facts that the state's cache keeps. A text lives as long as its facts. */
export class WrittenTexts {
  readonly #texts = new WeakMap<object, WrittenText>()

  /** Returns the answer of these facts at `now` (ISO 8601). */
  at<Facts extends object>(facts: Facts, now: string, write: (facts: Facts, now: string) => WrittenText): WrittenJson {
    let text = this.#texts.get(facts)
    if (!text || now > text.until) {
      text = write(facts, now)
      this.#texts.set(facts, text)
    }
    return new WrittenJson(text.before + now + text.after)
  }
}
