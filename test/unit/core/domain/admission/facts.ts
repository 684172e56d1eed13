import type { AdmissionFacts, LevelFacts } from '../../../../../core/domain/admission/index.ts'
import { parseCalled } from '../../../../../core/domain/numbers/parse.ts'

const FREE = { limit: null, used: 0 } as const

export const level = (changes: Partial<LevelFacts> & Pick<LevelFacts, 'level'>): LevelFacts => ({
  id: `${changes.level}_1`,
  name: `the ${changes.level}`,
  concurrency: FREE,
  cps: FREE,
  daily_spend: FREE,
  velocity: FREE,
  max_destination_rate_minor: null,
  max_call_duration_seconds: null,
  ...changes,
})

/** A call that every check lets pass, with all five levels and no ceiling. */
export const facts = (changes: Partial<AdmissionFacts> = {}): AdmissionFacts => ({
  direction: 'outbound',
  over: 'network',
  service: { type: 'subtrunk', id: 'stk_1', name: 'Branch' },
  holders: [
    { kind: 'project', id: 'prj_1', name: 'Shop', status: 'active', enabled: true },
    { kind: 'subaccount', id: 'sub_1', name: 'North', status: 'enabled', enabled: true },
    { kind: 'trunk', id: 'trk_1', name: 'Lagos office', status: 'enabled', enabled: true },
    { kind: 'subtrunk', id: 'stk_1', name: 'Branch', status: 'enabled', enabled: true },
  ],
  switched_off_by: null,
  closed_by: null,
  trunk: {
    name: 'Lagos office',
    direction: 'both',
    require_tls: false,
    media_security: 'rtp',
    codecs: ['PCMA', 'PCMU'],
  },
  transport: 'udp',
  offer: { codecs: ['PCMU', 'G729'], sdes_srtp: false },
  called: parseCalled('+2348031234567', 'NG'),
  caller: { given: '+2342010000001', e164: '+2342010000001', ownership: 'owned' },
  risk: null,
  policies: [],
  containments: [],
  billing: 'rated',
  price_book: { id: 'pbk_1', name: 'Standard' },
  rate: {
    id: 'rat_1',
    prefix: '234',
    label: 'Nigeria',
    rate_micro: 60_000_000,
    rate_unit: 'minute',
    increment_initial_seconds: 10,
    increment_additional_seconds: 10,
  },
  routes: 1,
  levels: (['subtrunk', 'trunk', 'policy', 'subaccount', 'project'] as const).map(name => level({ level: name })),
  balance: { name: 'Shop', available_minor: null },
  ...changes,
})

/** The same facts with one level changed. */
export const withLevel = (
  base: AdmissionFacts,
  name: LevelFacts['level'],
  changes: Partial<LevelFacts>,
): AdmissionFacts => ({
  ...base,
  levels: base.levels.map(each => (each.level === name ? { ...each, ...changes } : each)),
})
