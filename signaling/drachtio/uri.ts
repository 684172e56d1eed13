// Reads addresses in SIP messages. The text is untrusted.

/** Returns the URI of a From, To, Contact or asserted identity; the first of several. */
export function addressOf(value: string | null): string {
  const text = value ?? ''
  return (/<([^>]*)>/.exec(text)?.[1] ?? text.split(/[;,]/)[0] ?? '').trim()
}

/** Returns the tag of a From or To value; '' when there is none. */
export const tagOf = (value: string | null): string => /;\s*tag=([^;,\s>]+)/i.exec(value ?? '')?.[1] ?? ''

/** Returns the host of a sip: URI, an IPv6 address without brackets; '' when there is none. */
export const hostOf = (uri: string): string =>
  (/^sips?:(?:[^@]*@)?(\[[^\]]*\]|[^:;?>\s]+)/i.exec(uri)?.[1] ?? '').replace(/^\[|\]$/g, '')

/** Returns the decoded user part of a sip: URI, or number of a tel: URI, without parameters. */
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
