let format: Intl.NumberFormat | undefined

/** A number as a person reads it: `12,345`. */
export function grouped(value: number): string {
  // ICU takes a hundred times as long, and admission counts routes for each call.
  if (Number.isInteger(value) && value >= 0 && value < 1000) return String(value)
  // A format takes milliseconds to make.
  format ??= new Intl.NumberFormat('en')
  return format.format(value)
}

/** A number with its noun: `1 call`, `2,000 calls`. Both forms may have a verb: `call waits`, `calls wait`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${grouped(value)} ${value === 1 ? one : many}`
