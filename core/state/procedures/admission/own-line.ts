import type { Service } from '../../../domain/admission/index.ts'
import { DEFAULT_COUNTRY } from '../../../domain/numbers/default-country.ts'
import { parseNumber } from '../../../domain/numbers/parse.ts'
import { type Query, textOrNull } from '../query.ts'
import type { AdmissionOutcome, AdmissionRequest } from './request.ts'
import { take } from './take.ts'

const OWN_LINE = `select route_kind as type, route_id as id from number
  where e164 = ? and project_id = ? and status = 'held' and route_kind is not null and route_id is not null`

const COUNTRY = `select country from trunk_setting
  where trunk_id = coalesce((select trunk_id from subtrunk where id = ?), ?)`

/**
 * Decides on a hypothetical call of a trunk's peer or of a program, as the call itself would be: one to a number that
 * the project holds and routes stays on the platform, and both of its sides are asked. Changes nothing.
 */
export function wouldAdmit(query: Query, request: AdmissionRequest): AdmissionOutcome {
  const { type, id } = request.service
  const [setting] = type === 'trunk' || type === 'subtrunk' ? query(COUNTRY, id, id) : []
  const country = (setting && textOrNull(setting, 'country')) ?? DEFAULT_COUNTRY
  const e164 = parseNumber(request.called, country)?.e164 ?? ''
  const [service] = query<Service>(OWN_LINE, e164, request.project_id)
  const ask = (changes: Partial<AdmissionRequest>) =>
    take(query, { request: { ...request, ...changes }, dry_run: true })
  if (!service) return ask({})
  const near = ask({ part: 'on_net', way: null })
  if (!near.admitted) return near
  const far = ask({ called: e164, part: 'inbound', way: null, service, own_targets: null })
  return { ...(far.admitted ? near : far), trace: [...near.trace, ...far.trace] }
}
