/** Text without an end of phrase is cut at a space when it is this long. */
const MAX_PHRASE = 300
/** A clause of at least this length may be spoken by itself. */
const MIN_CLAUSE = 40

/** A sentence ends before white space, so that 3.5 and example.com stay whole. */
const SENTENCE_END = /[.!?…:;]["')\]]*\s|[。！？]|\n/g
const CLAUSE_END = /[,–—]\s|[，、]/g
const ABBREVIATION = /(^|[\s("'])(Mr|Mrs|Ms|Dr|St|Prof|vs|e\.g|i\.e)\.\s$/i

/** Joins the tokens of a turn and gives out each phrase when it is complete. */
export class Phrases {
  #text = ''

  /** Takes a token, and returns the phrases that it completes. */
  add(token: string): string[] {
    this.#text += token
    const phrases: string[] = []
    for (let end = endOfPhrase(this.#text); end !== null; end = endOfPhrase(this.#text)) {
      phrases.push(this.#text.slice(0, end))
      this.#text = this.#text.slice(end)
    }
    return phrases.filter(phrase => phrase.trim() !== '')
  }

  /** The turn is over: returns what is left; null when that is nothing. */
  end(): string | null {
    const rest = this.#text
    this.#text = ''
    return rest.trim() === '' ? null : rest
  }
}

function endOfPhrase(text: string): number | null {
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length
    if (text.slice(0, end).trim() !== '' && !ABBREVIATION.test(text.slice(0, end))) return end
  }
  for (const match of text.matchAll(CLAUSE_END)) {
    const end = match.index + match[0].length
    if (end >= MIN_CLAUSE) return end
  }
  if (text.length < MAX_PHRASE) return null
  const space = text.lastIndexOf(' ', MAX_PHRASE)
  return space > 0 ? space + 1 : MAX_PHRASE
}
