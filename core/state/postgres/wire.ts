const FIRST_BYTES = 16 * 1024
/** An UTF-16 unit has at most three bytes in UTF-8. */
const BYTES_OF_UNIT = 3
const [INT16, INT32] = [2, 4]

/**
 * Messages of the frontend (PostgreSQL, 55.7), one after the other in one buffer. The driver makes a buffer of each,
 * and a socket that gets hundreds of small ones costs more than the statements in them.
 */
export class Messages {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #length = 0

  /** Prepares a statement whose parameters have the types that the server infers. */
  parse(name: string, sql: string): void {
    const start = this.#begin('P')
    this.#text(name)
    this.#text(sql)
    this.#int16(0)
    this.#end(start)
  }

  /** Binds values as texts to a prepared statement, and runs it. All columns come as text. */
  run(statement: string, values: readonly (string | null)[]): void {
    const start = this.#begin('B')
    this.#text('')
    this.#text(statement)
    this.#int16(0)
    this.#int16(values.length)
    for (const value of values) this.#value(value)
    this.#int16(0)
    this.#end(start)
    const executes = this.#begin('E')
    this.#text('')
    this.#int32(0)
    this.#end(executes)
  }

  sync(): void {
    this.#end(this.#begin('S'))
  }

  /** Returns the messages so far. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Begins a message. Returns where its length stands. */
  #begin(kind: string): number {
    this.#reserve(1 + INT32)
    this.#buffer[this.#length] = kind.charCodeAt(0)
    this.#length += 1 + INT32
    return this.#length - INT32
  }

  #end(start: number): void {
    this.#buffer.writeInt32BE(this.#length - start, start)
  }

  #value(value: string | null): void {
    this.#reserve(INT32)
    const start = this.#length
    this.#length += INT32
    if (value !== null) this.#characters(value)
    this.#buffer.writeInt32BE(value === null ? -1 : this.#length - start - INT32, start)
  }

  /** A text with the zero at its end. */
  #text(text: string): void {
    this.#characters(text)
    this.#reserve(1)
    this.#buffer[this.#length++] = 0
  }

  #characters(text: string): void {
    if (text === '') return
    this.#reserve(text.length * BYTES_OF_UNIT)
    this.#length += this.#buffer.write(text, this.#length)
  }

  #int16(value: number): void {
    this.#reserve(INT16)
    this.#length = this.#buffer.writeInt16BE(value, this.#length)
  }

  #int32(value: number): void {
    this.#reserve(INT32)
    this.#length = this.#buffer.writeInt32BE(value, this.#length)
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}
