import { findEndpoint, type WebhookEndpointRow } from '../../core/state/delivery/webhook-endpoints.ts'
import { type ApiKeyRow, findKey } from '../../core/state/people/api-keys.ts'
import { findMember, type MemberRow } from '../../core/state/people/organizations.ts'
import type { Caller } from '../http/caller.ts'
import { type Loader, routesWith } from '../http/route.ts'
import { isMember, type MemberCaller } from './cookie.ts'

const key: Loader<'key', ApiKeyRow> = {
  name: 'key',
  load: (db, { id, organization_id }) => findKey(db, organization_id, id),
}

const member: Loader<'member', MemberRow> = {
  name: 'member',
  load: (db, { id, organization_id }) => findMember(db, organization_id, id),
}

const endpoint: Loader<'endpoint', WebhookEndpointRow> = {
  name: 'endpoint',
  load: (db, { id, project_id }) => findEndpoint(db, project_id, id),
}

/** Declares an endpoint of /console/api. */
export const route = routesWith({ key_id: key, member_id: member, endpoint_id: endpoint } as const)

/** Returns the calling member. Every route here except the sign-in has one. */
export function memberOf(caller: Caller): MemberCaller {
  if (!isMember(caller)) throw new Error('a console route was run without a member')
  return caller
}
