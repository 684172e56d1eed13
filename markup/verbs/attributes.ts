/** What a fault does: nothing but a warning and the default; the child of the Dial fails; the document stops. */
export type Effect = 'default' | 'child' | 'document'

/** One attribute of a verb or noun: how its text is read, what stands in for it, and the number of a bad value. */
export interface AttributeType<T> {
  /** The value, or undefined when the text is not one. The text is trimmed. */
  read(text: string): T | undefined
  readonly fallback: T
  readonly number: number
  readonly effect: Effect
  /** For documentation and messages: what may be written. */
  readonly values: string
  /** Accepted for compatibility, without effect here. */
  readonly ignored: boolean
  /** What is doubtful about a text that is used all the same. */
  doubt?(text: string): string | undefined
}

export type AttributeTypes = Readonly<Record<string, AttributeType<unknown>>>
export type Values<A extends AttributeTypes> = {
  readonly [K in keyof A]: A[K] extends AttributeType<infer T> ? T : never
}

/** Number of faults without a more special one: does not fit the schema. */
export const SCHEMA = 12200

interface Options<T> {
  readonly default: T
  readonly number?: number
  readonly effect?: Effect
}

function attribute<T>(values: string, options: Options<T>, read: (text: string) => T | undefined): AttributeType<T> {
  return {
    read,
    values,
    fallback: options.default,
    number: options.number ?? SCHEMA,
    effect: options.effect ?? 'default',
    ignored: false,
  }
}

/** Decimal integer; outside min..max it is bad, or with `clamp` moved to the nearer end. */
export function integer<T extends number | null>(
  options: Options<T> & { min?: number; max?: number; clamp?: boolean },
): AttributeType<T | number> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER, clamp = false } = options
  const range = max === Number.MAX_SAFE_INTEGER ? `integer from ${min}` : `integer ${min} to ${max}`
  return attribute<T | number>(clamp ? `${range}, clamped` : range, options, text => {
    if (!/^[+-]?\d{1,15}$/.test(text)) return undefined
    const value = Number(text)
    if (clamp) return Math.min(max, Math.max(min, value))
    return value >= min && value <= max ? value : undefined
  })
}

/** `true` or `false` in any case, 1 and 0 tolerated. */
export function flag(fallback: boolean, number?: number, effect?: Effect): AttributeType<boolean> {
  const options = { default: fallback, ...(number ? { number } : {}), ...(effect ? { effect } : {}) }
  return attribute('true, false', options, text => {
    const word = text.toLowerCase()
    if (word === 'true' || word === '1') return true
    return word === 'false' || word === '0' ? false : undefined
  })
}

export function oneOf<const V extends string, const T extends V | null>(
  values: readonly V[],
  options: Options<T> & { aliases?: Readonly<Record<string, V>>; caseless?: boolean },
): AttributeType<V | T> {
  return attribute<V | T>(values.join(', '), options, text => {
    const word = options.caseless ? text.toLowerCase() : text
    return values.find(v => (options.caseless ? v.toLowerCase() : v) === word) ?? options.aliases?.[word]
  })
}

export function method(number?: number, effect?: Effect): AttributeType<'GET' | 'POST'> {
  return oneOf(['GET', 'POST'], {
    default: 'POST',
    caseless: true,
    ...(number ? { number } : {}),
    ...(effect ? { effect } : {}),
  })
}

/** Event names separated by spaces or commas; unknown ones are accepted with a warning and never match. */
export function events(known: readonly string[], fallback: readonly string[], number: number) {
  const split = (text: string) => text.split(/[\s,]+/).filter(Boolean)
  return {
    ...attribute(`list of ${known.join(', ')}`, { default: fallback, number }, text =>
      split(text).filter(word => known.includes(word)),
    ),
    doubt: (text: string) => {
      const unknown = split(text).find(word => !known.includes(word))
      return unknown === undefined ? undefined : `unknown event "${unknown}"`
    },
  }
}

/** Text up to a length; absent is null. */
export function text(options: { max?: number; number?: number; effect?: Effect } = {}): AttributeType<string | null> {
  const { max = 4096 } = options
  return attribute<string | null>(`text up to ${max} characters`, { ...options, default: null }, value =>
    value.length <= max ? value : undefined,
  )
}

/** Text of a pattern. */
export function pattern<T extends string | null>(
  shape: RegExp,
  values: string,
  options: Options<T>,
): AttributeType<string | T> {
  return attribute<string | T>(values, options, value => (shape.test(value) ? value : undefined))
}

/** A URL as written, absolute http(s) or relative; it is resolved when it is used. Absent is null. */
export function url(number?: number, effect?: Effect): AttributeType<string | null> {
  const options = { default: null, ...(number ? { number } : {}), ...(effect ? { effect } : {}) }
  return attribute<string | null>('URL', options, value => (isUrl(value) ? value : undefined))
}

/** Repetitions: 0 is "until hang-up", which is at most 1000 times (voice-compat.md §10). */
export function loop(number: number): AttributeType<number> {
  return attribute('integer from 0; 0 until hang-up', { default: 1, number }, value => {
    if (!/^\d{1,9}$/.test(value)) return undefined
    return value === '0' || Number(value) > 1000 ? 1000 : Number(value)
  })
}

/** A value that another reader knows, with a spelled-out alternative such as `auto`. */
export function custom<T>(values: string, options: Options<T>, read: (value: string) => T | undefined) {
  return attribute(values, options, read)
}

/** Accepted and without effect. */
export function ignored(values = 'any'): AttributeType<string | null> {
  return { ...attribute<string | null>(values, { default: null }, value => value), ignored: true }
}

/** Whether text can be an http(s) URL, alone or against a base. */
function isUrl(value: string): boolean {
  try {
    const { protocol } = new URL(value, 'http://base.invalid/')
    return protocol === 'http:' || protocol === 'https:'
  } catch {
    return false
  }
}
