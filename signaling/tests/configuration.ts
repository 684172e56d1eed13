import { lookup, resolveSrv } from 'node:dns/promises'
import { checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { holdsAddress, parseAddress } from '../../core/domain/identity/index.ts'
import {
  type CertificateFacts,
  codecsInSdp,
  judgeApplied,
  judgeCodecs,
  judgeDigest,
  judgeDns,
  judgeOptions,
  judgeSources,
  judgeTls,
  type OptionsOutcome,
} from '../../core/domain/trunk-tests/index.ts'
import type { Context } from '../b2bua/context.ts'
import { hostOf } from '../b2bua/routes.ts'
import { targetUri } from '../trunks/health.ts'
import type { Target, TrunkConfig } from '../trunks/snapshot.ts'
import type { Report } from './report.ts'

const DNS_LIMIT_MS = 5000
const TLS_LIMIT_MS = 5000
const OPTIONS_LIMIT_MS = 6000
const MAX_TARGETS = 10

/** Whether a trunk can work as it is set up: nothing is called. */
export async function validateConfiguration(
  ctx: Context,
  trunk: TrunkConfig,
  facts: { readonly wanted_revision: number; readonly direction: 'inbound' | 'outbound' | 'both' },
  report: Report,
): Promise<void> {
  const targets = trunk.targets.filter(target => target.enabled).slice(0, MAX_TARGETS)
  const applied = await report.plan('the saved configuration is in force', null)
  const sources = await report.plan('sources do not overlap', null)
  const digest = await report.plan('digest set-up', null)
  const planned = []
  for (const target of targets)
    planned.push({
      target,
      dns: await report.plan(`${target.uri} resolves`, target.id),
      tls: isTls(target) ? await report.plan(`certificate of ${target.uri}`, target.id) : null,
      options: await report.plan(`${target.uri} answers OPTIONS`, target.id),
      codecs: await report.plan(`codecs of ${target.uri}`, target.id),
    })
  await applied(async () => judgeApplied(facts.wanted_revision, trunk.enabled ? trunk.revision : null))
  await sources(async () =>
    judgeSources({
      auth_mode: trunk.auth_mode,
      direction: facts.direction,
      sources: trunk.sources,
      shared: sharedSources(ctx, trunk),
    }),
  )
  await digest(async () => {
    const own = [...ctx.snapshot().credentials.values()].flat().filter(credential => credential.trunk_id === trunk.id)
    return judgeDigest({
      auth_mode: trunk.auth_mode,
      usernames: own.map(credential => credential.username),
      realm: own[0]?.realm ?? null,
    })
  })
  for (const { target, dns, tls, options, codecs } of planned) {
    const host = hostOf(target.uri)
    const name = await dns(async () => judgeDns(host, await resolve(target)))
    const skip = async () => ({ state: 'skipped' as const, summary: `${host} does not resolve.` })
    if (name.state === 'failed') {
      await tls?.(skip)
      await options(skip)
      await codecs(skip)
      continue
    }
    await tls?.(async () => judgeTls(host, await certificate(target), ctx.clock.now()))
    let sdp: string | null = null
    await options(async () => {
      const answer = await askOptions(ctx, target)
      sdp = answer.sdp
      return judgeOptions(target.uri, answer.outcome)
    })
    const offered = sdp === null ? null : codecsInSdp(sdp)
    await codecs(async () => judgeCodecs(target.uri, offered, trunk.codecs))
  }
}

const isTls = (target: Target): boolean => target.transport === 'tls' || /^sips:/i.test(target.uri)

const portOf = (target: Target): number | null => {
  const text = /^sips?:(?:[^@]*@)?(?:\[[^\]]*\]|[^:;?>\s]+):(\d{1,5})/i.exec(target.uri)?.[1]
  return text === undefined ? null : Number(text)
}

function sharedSources(ctx: Context, trunk: TrunkConfig): { cidr: string; trunk: string }[] {
  const found = []
  for (const cidr of trunk.sources) {
    const address = cidr.split('/')[0] ?? ''
    for (const other of ctx.snapshot().trunks.values())
      if (other.id !== trunk.id && other.project_id === trunk.project_id && holdsAddress(other.source_index, address))
        found.push({ cidr, trunk: other.name })
  }
  return found.slice(0, 10)
}

/** SRV where the URI has no port, then addresses (RFC 3263 §4.2). */
async function resolve(target: Target): Promise<{ addresses: readonly string[] } | { error: string }> {
  const host = hostOf(target.uri)
  if (parseAddress(host)) return { addresses: [host] }
  try {
    return await within(DNS_LIMIT_MS, async () => {
      const service = { udp: '_sip._udp', tcp: '_sip._tcp', tls: '_sips._tcp' }[target.transport]
      const records = portOf(target) === null ? await resolveSrv(`${service}.${host}`).catch(() => []) : []
      const names = records.length > 0 ? records.slice(0, 5).map(record => record.name) : [host]
      const found = await Promise.all(names.map(name => lookup(name, { all: true })))
      return { addresses: found.flat().map(one => one.address) }
    })
  } catch (error) {
    return { error: codeOf(error) }
  }
}

const codeOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

/** The certificate is looked at here, so that a bad one is told instead of refused. */
function certificate(target: Target): Promise<CertificateFacts | { error: string }> {
  const host = hostOf(target.uri)
  const port = portOf(target) ?? 5061
  return new Promise(done => {
    const socket = connect({
      host,
      port,
      rejectUnauthorized: false,
      ...(parseAddress(host) ? {} : { servername: host }),
    })
    const end = (outcome: CertificateFacts | { error: string }): void => {
      socket.destroy()
      done(outcome)
    }
    socket.setTimeout(TLS_LIMIT_MS, () => end({ error: 'no answer in time' }))
    socket.once('error', error => end({ error: codeOf(error) }))
    socket.once('secureConnect', () => {
      const peer = socket.getPeerCertificate()
      if (!peer?.valid_to) return end({ error: 'the peer showed no certificate' })
      end({
        subject: nameOf(peer.subject, peer),
        issuer: nameOf(peer.issuer, peer),
        valid_from_ms: Date.parse(peer.valid_from),
        valid_to_ms: Date.parse(peer.valid_to),
        matches_host: checkServerIdentity(host, peer) === undefined,
        untrusted: socket.authorized ? null : String(socket.authorizationError ?? 'unknown'),
      })
    })
  })
}

const nameOf = (name: PeerCertificate['subject'] | undefined, peer: PeerCertificate): string => {
  const text = name?.CN ?? name?.O ?? peer.fingerprint256 ?? 'unnamed'
  return (Array.isArray(text) ? text.join(', ') : text).slice(0, 120)
}

async function askOptions(ctx: Context, target: Target): Promise<{ outcome: OptionsOutcome; sdp: string | null }> {
  const begun_ms = ctx.clock.monotonic_ms()
  try {
    const answer = await within(OPTIONS_LIMIT_MS, () =>
      ctx.sip.request({
        method: 'OPTIONS',
        uri: targetUri(target.uri, target.transport),
        headers: { Accept: 'application/sdp' },
      }),
    )
    const duration_ms = Math.round(ctx.clock.monotonic_ms() - begun_ms)
    // Answers that the SIP server makes up for silence and unreachable targets have no source.
    if (answer.source.port === 0 || answer.source.address === '')
      return {
        outcome: answer.status === 408 ? { silent_ms: duration_ms } : { error: `${answer.status} ${answer.reason}` },
        sdp: null,
      }
    const { status, reason } = answer
    return { outcome: { status, reason, duration_ms }, sdp: answer.body === '' ? null : answer.body }
  } catch (error) {
    if (error instanceof TooLate) return { outcome: { silent_ms: OPTIONS_LIMIT_MS }, sdp: null }
    return { outcome: { error: codeOf(error) }, sdp: null }
  }
}

class TooLate extends Error {
  override readonly name = 'TooLate'
}

/** @throws TooLate when `work` takes longer; what it does then is nobody's any more */
function within<T>(limit_ms: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TooLate('no answer in time')), limit_ms)
    work()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
