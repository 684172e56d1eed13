import { linesOf, wrongSipUri, wrongSources } from './checks.ts'

/** The form of a new trunk, and the request that the console makes from it. */

export interface TargetDraft {
  readonly sip_uri: string
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly priority: number
  readonly weight: number
}

export interface TrunkDraft {
  readonly name: string
  readonly direction: 'inbound' | 'outbound' | 'both'
  readonly auth_mode: 'ip_allow_list' | 'digest'
  readonly sources: string
  readonly source_validation: 'relaxed' | 'strict'
  readonly require_tls: boolean
  readonly targets: readonly TargetDraft[]
  readonly codecs: readonly string[]
  readonly media_security: 'rtp' | 'sdes_srtp_required'
  readonly concurrency: number | null
  readonly cps: number | null
  readonly max_call_duration_seconds: number | null
  readonly outbound_policy_id: string
  readonly number_block_ids: readonly string[]
}

export const NEW_TRUNK: TrunkDraft = {
  name: '',
  direction: 'both',
  auth_mode: 'digest',
  sources: '',
  source_validation: 'relaxed',
  require_tls: false,
  targets: [],
  codecs: ['PCMA', 'PCMU'],
  media_security: 'rtp',
  concurrency: 30,
  cps: 5,
  max_call_duration_seconds: 14_400,
  outbound_policy_id: '',
  number_block_ids: [],
}

/** Returns why the user cannot leave a step yet, or null. */
export function wrongIn(step: number, draft: TrunkDraft): string | null {
  if (step === 0) return draft.name.trim() === '' ? 'Give the trunk a name.' : null
  if (step === 1) {
    const wrong = wrongSources(draft.sources)
    if (wrong) return wrong
    return draft.auth_mode === 'ip_allow_list' && linesOf(draft.sources).length === 0
      ? 'An IP trunk needs at least one address.'
      : null
  }
  if (step === 2) {
    const bad = draft.targets.find(({ sip_uri, transport }) => sip_uri === '' || wrongSipUri(sip_uri, transport))
    return bad ? `The target “${bad.sip_uri}” is not right yet.` : null
  }
  if (step === 3) return draft.codecs.length === 0 ? 'Choose at least one codec.' : null
  return null
}

export const requestOf = (draft: TrunkDraft) => ({
  name: draft.name.trim(),
  direction: draft.direction,
  auth_mode: draft.auth_mode,
  sources: linesOf(draft.sources),
  source_validation: draft.source_validation,
  require_tls: draft.require_tls,
  targets: draft.targets,
  codecs: draft.codecs,
  media_security: draft.media_security,
  limits: {
    concurrency: draft.concurrency ?? 0,
    cps: draft.cps ?? 0,
    max_call_duration_seconds: draft.max_call_duration_seconds ?? 0,
  },
  ...(draft.outbound_policy_id === '' ? {} : { outbound_policy_id: draft.outbound_policy_id }),
  ...(draft.number_block_ids.length === 0 ? {} : { number_block_ids: draft.number_block_ids }),
})
