// Frames of the control link: a decimal byte count, '#', the payload. Payloads are byte strings, one character per
// byte.

/** Splits the byte stream of a control connection into payloads. */
export class FrameReader {
  readonly #max_bytes: number
  #chunks: string[] = []
  #size = 0
  #wanted = -1

  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes
  }

  /** Returns the payloads that are complete now. The last element is `undefined` when the stream is broken. */
  push(chunk: string): (string | undefined)[] {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    const out: (string | undefined)[] = []
    while (this.#wanted < 0 || this.#size >= this.#wanted) {
      const buffer = this.#chunks.length === 1 ? (this.#chunks[0] ?? '') : this.#chunks.join('')
      if (this.#wanted < 0) {
        const head = readLength(buffer)
        if (head === 'more') {
          this.#chunks = [buffer]
          break
        }
        if (head === 'bad' || head.length > this.#max_bytes) {
          out.push(undefined)
          this.#chunks = []
          this.#size = 0
          break
        }
        this.#wanted = head.length
        this.#set(buffer.slice(head.digits + 1))
      } else {
        out.push(buffer.slice(0, this.#wanted))
        this.#set(buffer.slice(this.#wanted))
        this.#wanted = -1
      }
      if (this.#size === 0 && this.#wanted < 0) break
    }
    return out
  }

  #set(rest: string): void {
    this.#chunks = rest === '' ? [] : [rest]
    this.#size = rest.length
  }
}

function readLength(buffer: string): { length: number; digits: number } | 'more' | 'bad' {
  let n = 0
  let i = 0
  for (; i < buffer.length; i++) {
    const c = buffer.charCodeAt(i)
    if (c === 35) return i === 0 ? 'bad' : { length: n, digits: i }
    if (c < 48 || c > 57 || i > 8) return 'bad'
    n = n * 10 + c - 48
  }
  return 'more'
}

/** Returns a payload with its length prefix. */
export function frame(payload: string): string {
  return `${payload.length}#${payload}`
}
