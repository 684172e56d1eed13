import { visible } from '../core/domain/text/visible.ts'

/**
 * Makes what commands print harmless to a terminal: names and SIP messages that others wrote may have escape sequences.
 * Text passes one function here, whatever prints it; a command's own sequences are bytes.
 */
export function guardTerminal(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean
  stream.write = ((chunk: unknown, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? visible(chunk) : chunk, ...rest)) as typeof stream.write
}
