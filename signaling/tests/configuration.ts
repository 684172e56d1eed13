import type { CodecName } from '../../core/domain/codecs/codec.ts'
import { holdsAddress } from '../../core/domain/identity/index.ts'
import { hostOf } from '../../core/domain/sip/address.ts'
import {
  codecsInSdp,
  judgeApplied,
  judgeCodecs,
  judgeDigest,
  judgeDns,
  judgeOptions,
  judgeRegistration,
  judgeTls,
  judgeTrunkSources,
  type OptionsOutcome,
} from '../../core/domain/trunk-tests/index.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import { listCarrierRegistrations } from '../../core/state/configuration/carrier-registrations.ts'
import type { CallContext } from '../b2bua/context.ts'
import { askOptions, isMadeUp } from '../trunks/health.ts'
import { certificateAt, codeOf } from '../trunks/peer-certificate.ts'
import type { CarrierConfig, Target, TrunkConfig } from '../trunks/snapshot.ts'
import type { TestReport } from './report.ts'
import { isTls, resolve, TooLate, within } from './target-faults.ts'

const OPTIONS_LIMIT_MS = 6000
const MAX_TARGETS = 10

/** Checks whether a trunk can work as configured, without a call. */
export async function validateConfiguration(
  ctx: CallContext,
  trunk: TrunkConfig,
  facts: { readonly wanted_revision: number; readonly direction: 'inbound' | 'outbound' | 'both' },
  report: TestReport,
): Promise<void> {
  const applied = await report.plan('the saved configuration is in force', null)
  const sources = await report.plan('sources do not overlap', null)
  const digest = await report.plan('digest set-up', null)
  const checkTargets = await planTargets(ctx, trunk, null, report)
  await applied(async () => judgeApplied(facts.wanted_revision, trunk.enabled ? trunk.revision : null))
  await sources(async () =>
    judgeTrunkSources({
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
  await checkTargets()
}

/** Checks whether a carrier can be reached and whether we are registered with it, without a call. */
export async function validateCarrier(
  ctx: CallContext,
  carrier: CarrierConfig,
  wanted_revision: number,
  report: TestReport,
): Promise<void> {
  const applied = await report.plan('the saved configuration is in force', null)
  const registered = await report.plan('registration', null)
  const checkTargets = await planTargets(ctx, carrier, carrier.id, report)
  await applied(async () => judgeApplied(wanted_revision, carrier.enabled ? carrier.revision : null, 'carrier'))
  await registered(async () => {
    if (!carrier.registration) return judgeRegistration(undefined)
    const registrations = await listCarrierRegistrations(ctx.state.db)
    return judgeRegistration(registrations.find(({ carrier_id }) => carrier_id === carrier.id)?.state ?? null)
  })
  await checkTargets()
}

/** Plans the checks of the enabled targets of a trunk, or of a carrier. The returned function performs them. */
async function planTargets(
  ctx: CallContext,
  peer: Pick<TrunkConfig | CarrierConfig, 'targets' | 'codecs'>,
  carrier_id: string | null,
  report: TestReport,
): Promise<() => Promise<void>> {
  const planned: PlannedTarget[] = []
  for (const target of peer.targets.filter(target => target.enabled).slice(0, MAX_TARGETS))
    planned.push({
      target,
      dns: await report.plan(`${target.uri} resolves`, target.id),
      tls: isTls(target) ? await report.plan(`certificate of ${target.uri}`, target.id) : null,
      options: await report.plan(`${target.uri} answers OPTIONS`, target.id),
      codecs: await report.plan(`codecs of ${target.uri}`, target.id),
    })
  return async () => {
    for (const each of planned) await checkTarget(ctx, each, peer.codecs, carrier_id)
  }
}

type Check = Awaited<ReturnType<TestReport['plan']>>

interface PlannedTarget {
  readonly target: Target
  readonly dns: Check
  readonly tls: Check | null
  readonly options: Check
  readonly codecs: Check
}

async function checkTarget(
  ctx: CallContext,
  { target, dns, tls, options, codecs }: PlannedTarget,
  wanted: readonly CodecName[],
  carrier_id: string | null,
): Promise<void> {
  const host = hostOf(target.uri)
  const found = await resolve(ctx, target, carrier_id)
  const name = await dns(async () => judgeDns(host, found))
  if (name.state === 'failed' || !('first' in found)) {
    const skip = async () => ({ state: 'skipped' as const, summary: `Nothing was sent to ${host}.` })
    for (const check of [tls, options, codecs]) await check?.(skip)
    return
  }
  const shown = () => certificateAt(ctx.config.data_dir, host, found.first)
  await tls?.(async () => judgeTls(host, await shown(), ctx.clock.now(), target.tls))
  let sdp: string | null = null
  await options(async () => {
    const answer = await optionsOf(ctx, target, carrier_id)
    sdp = answer.sdp
    return judgeOptions(target.uri, answer.outcome)
  })
  const offered = sdp === null ? null : codecsInSdp(sdp)
  await codecs(async () => judgeCodecs(target.uri, offered, wanted, carrier_id === null ? 'trunk' : 'carrier'))
}

function sharedSources(ctx: CallContext, trunk: TrunkConfig): { cidr: string; trunk: string }[] {
  const found = []
  for (const cidr of trunk.sources) {
    const address = cidr.split('/')[0] ?? ''
    for (const other of ctx.snapshot().trunks.values())
      if (other.id !== trunk.id && other.project_id === trunk.project_id && holdsAddress(other.source_index, address))
        found.push({ cidr, trunk: other.name })
  }
  return found.slice(0, 10)
}

async function optionsOf(
  ctx: CallContext,
  target: Target,
  carrier_id: string | null,
): Promise<{ outcome: OptionsOutcome; sdp: string | null }> {
  const begun_ms = ctx.clock.monotonic_ms()
  try {
    const answer = await within(OPTIONS_LIMIT_MS, () =>
      askOptions({ ...ctx, unseal: sealed => unseal(ctx.config.master_key, sealed) }, target, carrier_id),
    )
    const duration_ms = Math.round(ctx.clock.monotonic_ms() - begun_ms)
    if (isMadeUp(answer))
      return {
        outcome: answer.status === 408 ? { silent_ms: duration_ms } : { error: `${answer.status} ${answer.reason}` },
        sdp: null,
      }
    const { status, reason } = answer
    return { outcome: { status, reason, duration_ms }, sdp: answer.content().sdp || null }
  } catch (error) {
    if (error instanceof TooLate) return { outcome: { silent_ms: OPTIONS_LIMIT_MS }, sdp: null }
    return { outcome: { error: codeOf(error) }, sdp: null }
  }
}
