import { readAddresses } from '../../core/domain/sip/address.ts'

/**
 * Reads the contacts of a 3xx (RFC 3261 §8.1.3.4). Returns their URIs, highest `q` first (§20.10; the default is 1),
 * without the header part that a URI may have.
 */
export function redirectUris(contact: string): string[] {
  return readAddresses(contact)
    .filter(({ scheme }) => scheme === 'sip' || scheme === 'sips')
    .map(({ uri, params }) => ({ uri: uri.split('?', 1)[0] ?? '', q: qOf(params.get('q')) }))
    .sort((a, b) => b.q - a.q)
    .map(({ uri }) => uri)
}

const qOf = (text: string | undefined): number => (/^[01](?:\.\d{0,3})?$/.test(text ?? '') ? Number(text) : 1)
