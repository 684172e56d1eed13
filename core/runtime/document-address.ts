import { createHmac } from 'node:crypto'
import { sameSecret } from './secrets.ts'

/** Addresses of saved documents. Whoever has one may read the document, so that it works as a `voice_url`. */

const PATH = /^\/documents\/(doc_[0-9a-f-]{36})$/

const signatureOf = (master_key: Buffer, id: string): string =>
  createHmac('sha256', master_key).update(`saved document ${id}`).digest('hex')

interface Installation {
  readonly base_url: string
  readonly master_key: Buffer
}

export const documentUrl = ({ base_url, master_key }: Installation, id: string): string =>
  `${base_url}/documents/${id}?signature=${signatureOf(master_key, id)}`

/** Returns the document that a path names when the signature is its own; null otherwise. Takes the same time always. */
export function signedDocument(master_key: Buffer, path: string, signature: string | null): string | null {
  const id = PATH.exec(path)?.[1]
  return id !== undefined && sameSecret(signature ?? '', signatureOf(master_key, id)) ? id : null
}

/** Whether a URL is below the documents of this installation. The host decides, as for its recordings. */
export function isDocumentUrl(url: string, base_url: string): boolean {
  if (!URL.canParse(url) || !URL.canParse(base_url)) return false
  const [given, base] = [new URL(url), new URL(base_url)]
  if (!/^https?:$/.test(given.protocol) || given.host !== base.host) return false
  return pathBelow(given, base).startsWith('/documents/')
}

/** Returns the document of a URL of this installation; null when the signature is not its own. */
export function documentAt(url: string, { base_url, master_key }: Installation): string | null {
  const given = new URL(url)
  return signedDocument(master_key, pathBelow(given, new URL(base_url)), given.searchParams.get('signature'))
}

const pathBelow = (given: URL, base: URL): string => {
  const prefix = base.pathname.replace(/\/+$/, '')
  return given.pathname.startsWith(`${prefix}/`) ? given.pathname.slice(prefix.length) : ''
}
