import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { extname, join } from 'node:path'
import type { ParameterizedContext } from 'koa'
import { TREE } from '../core/runtime/tree.ts'
import { listProjects } from '../core/state/people/organizations.ts'
import { FIRST_READS } from './console/lib/first-reads.ts'
import { createMatcher } from './http/matcher.ts'
import { isRefusal } from './http/reply.ts'
import type { Services } from './http/services.ts'
import { MEMBERS_ONLY, type sessionAuthentication } from './session/cookie.ts'

/** The folder into which `scripts/console.mjs` builds the pages. */
const BUILT = join(TREE, 'build', 'console')

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json; charset=utf-8',
}

interface File {
  readonly type: string
  readonly bytes: Buffer
  readonly brotli: Buffer | null
}

/** Reads every file of the build into memory, by its path below /console. They are few and small. */
function filesOf(folder: string): ReadonlyMap<string, File> {
  const files = new Map<string, File>()
  if (!existsSync(folder)) return files
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const path = join(folder, name)
    const packed = `${path}.br`
    files.set(`/${name}`, {
      type,
      bytes: readFileSync(path),
      brotli: existsSync(packed) ? readFileSync(packed) : null,
    })
  }
  return files
}

/** A read of the console's API that the page will make. The browser asks while it loads the scripts. */
const readLink = (path: string): string => `</console/api${path}>; rel=preload; as=fetch; crossorigin`

/**
 * Returns the links (RFC 8288) of the page at a path below /console: the session, which every page reads first, and its
 * scripts, which `scripts/console.mjs` lists by page. Without them a browser finds each in the one before.
 */
function linksOf(files: ReadonlyMap<string, File>): (below: string) => string[] {
  const listed = files.get('/scripts.json')?.bytes.toString() ?? '{}'
  const pages = createMatcher<readonly string[]>()
  for (const [template, scripts] of Object.entries(JSON.parse(listed) as Record<string, string[]>))
    pages.add('get', template, scripts)
  return below => {
    const found = pages.find('GET', below)
    const scripts = found && 'value' in found ? found.value : []
    return [readLink('/session'), ...scripts.map(path => `<${path}>; rel=modulepreload`)]
  }
}

/**
 * Returns the links of what the page reads beside its session, for a signed-in member who may read it. A request of the
 * browser's own names no project, so an organization with several gets none.
 */
function readsOf({ state }: Services, session: Session) {
  return async (request: IncomingMessage, below: string): Promise<string[]> => {
    const reads = Object.hasOwn(FIRST_READS, below) ? FIRST_READS[below] : undefined
    if (!reads || request.headers.cookie === undefined) return []
    // Without an answer of the state the page still comes, and shows what its own reads are told.
    const caller = await session(request, MEMBERS_ONLY).catch(() => null)
    if (!caller || isRefusal(caller) || !caller.scopes.has(reads.scope)) return []
    const projects = await listProjects(state.db, caller.organization_id)
    return projects.length === 1 ? reads.paths.map(readLink) : []
  }
}

type Session = ReturnType<typeof sessionAuthentication>

const notBuilt = 'The console has not been built: run `npm run setup`, then start again.\n'

/**
 * Serves the console below /console. Every path without a file returns the single page, which routes by the address.
 * The name of a file under /assets contains its hash, so that clients may cache it for ever.
 */
export function consolePages(services: Services, session: Session, folder = BUILT) {
  const { settings } = services
  const files = filesOf(folder)
  const links = linksOf(files)
  const reads = readsOf(services, session)
  const policyFor = (host: string): string => {
    // The softphone speaks SIP to the edge's ports on the same host.
    const edge = [`ws://${host}:*`, `wss://${host}:*`].join(' ')
    return [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "font-src 'self'",
      "media-src 'self' blob:",
      `connect-src 'self' ${edge}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; ')
  }
  return async (ctx: ParameterizedContext): Promise<void> => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.status = 405
      ctx.set('Allow', 'GET, HEAD')
      return
    }
    const below = ctx.path.slice('/console'.length)
    const isAsset = below.startsWith('/assets/')
    const page = files.get('/index.html')
    const file = files.get(below) ?? (isAsset ? undefined : page)
    ctx.set('Referrer-Policy', 'no-referrer')
    if (!file) {
      ctx.status = isAsset ? 404 : 503
      ctx.type = 'text/plain; charset=utf-8'
      ctx.body = isAsset ? 'There is no such file.\n' : notBuilt
      return
    }
    ctx.set('Content-Security-Policy', policyFor(hostOf(ctx.get('host'), settings.host)))
    ctx.set('Permissions-Policy', 'microphone=(self), camera=(), geolocation=()')
    ctx.set('X-Frame-Options', 'DENY')
    ctx.set('Cache-Control', isAsset ? 'public, max-age=31536000, immutable' : 'no-cache')
    ctx.set('Vary', file === page ? 'Accept-Encoding, Cookie' : 'Accept-Encoding')
    if (file === page) {
      const read = ctx.search === '' ? await reads(ctx.req, below) : []
      ctx.set('Link', [...links(below), ...read].join(', '))
    }
    ctx.type = file.type
    const packed = file.brotli && ctx.acceptsEncodings('br', 'identity') === 'br' ? file.brotli : null
    if (packed) ctx.set('Content-Encoding', 'br')
    ctx.body = packed ?? file.bytes
  }
}

/** Returns the host of a Host header without its port, or `fallback` when it is not a host name. */
function hostOf(header: string, fallback: string): string {
  const match = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(?::\d+)?$/.exec(header)
  return match?.[1] ?? fallback
}
