// What is read of the addresses in SIP messages, which are strangers' text.

/** The URI of a From, To, Contact or asserted identity; of several the first. */
export function addressOf(value: string | null): string {
  const text = value ?? ''
  return (/<([^>]*)>/.exec(text)?.[1] ?? text.split(/[;,]/)[0] ?? '').trim()
}

/** Tag of a From or To value. */
export const tagOf = (value: string | null): string => /;\s*tag=([^;,\s>]+)/i.exec(value ?? '')?.[1] ?? ''

/** Host of a sip: URI, an IPv6 address without its brackets; '' where there is none. */
export const hostOf = (uri: string): string =>
  (/^sips?:(?:[^@]*@)?(\[[^\]]*\]|[^:;?>\s]+)/i.exec(uri)?.[1] ?? '').replace(/^\[|\]$/g, '')

/** User part of a sip: URI or the number of a tel: URI, decoded, without parameters. */
export function userOf(uri: string): string {
  const user =
    /^sips?:([^@;?]*)@/i.exec(uri)?.[1] ??
    /^sips?:([^@:;?]*)(?:;|$)/i.exec(uri)?.[1] ??
    /^tel:([^;?]*)/i.exec(uri)?.[1] ??
    ''
  try {
    return decodeURIComponent(user.split(':')[0] ?? '').replace(/[\r\n\0]/g, '')
  } catch {
    return user.replace(/[\r\n\0]/g, '')
  }
}
