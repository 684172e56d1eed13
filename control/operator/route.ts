import { type AlertRow, findAnyAlert } from '../../core/state/alerts/alerts.ts'
import {
  type ContainmentRow,
  findAnyContainment,
  findAnyReleaseRequest,
  type ReleaseRequestRow,
} from '../../core/state/alerts/containments.ts'
import { type Carrier, findCarrier } from '../../core/state/configuration/carriers.ts'
import { findImport, type NumberImportRow } from '../../core/state/configuration/number-imports.ts'
import { findAnyNumber, type NumberRow } from '../../core/state/configuration/numbers.ts'
import { findAnyTrunk, type TrunkRow } from '../../core/state/configuration/trunks.ts'
import { findBook, type PriceBookRow } from '../../core/state/money/rates.ts'
import { findNode, type NodeRow } from '../../core/state/nodes/nodes.ts'
import { findAnyProject, type OrganizationRow } from '../../core/state/people/customers.ts'
import { findOperatorKeyById, type OperatorKeyRow } from '../../core/state/people/operator-keys.ts'
import { findOrganization, type MemberRow, type ProjectRow } from '../../core/state/people/organizations.ts'
import { findAnyMember } from '../../core/state/people/password-resets.ts'
import { findVoiceAccount, type VoiceAccountRow } from '../../core/state/people/voice-accounts.ts'
import { type Loader, routesWith } from '../http/route.ts'

const revision = (row: { readonly revision: number }): number => row.revision

const organization: Loader<'organization', OrganizationRow> = {
  name: 'organization',
  load: (db, { id }) => findOrganization(db, id),
  revision,
}

const customer: Loader<'customer', ProjectRow> = {
  name: 'customer',
  load: (db, { id }) => findAnyProject(db, id),
  revision,
}

const number: Loader<'number', NumberRow> = {
  name: 'number',
  load: (db, { id }) => findAnyNumber(db, id),
  revision,
}

const numberImport: Loader<'number_import', NumberImportRow> = {
  name: 'number_import',
  load: (db, { id }) => findImport(db, id),
}

const carrier: Loader<'carrier', Carrier> = {
  name: 'carrier',
  load: (db, { id }) => findCarrier(db, id),
  revision,
}

const book: Loader<'book', PriceBookRow> = { name: 'book', load: (db, { id }) => findBook(db, id, { cost: false }) }
const costBook: Loader<'book', PriceBookRow> = { name: 'book', load: (db, { id }) => findBook(db, id, { cost: true }) }

const key: Loader<'key', OperatorKeyRow> = {
  name: 'key',
  load: (db, { id }) => findOperatorKeyById(db, id),
}

/** The voice account of the project in the path, which has one. */
const account: Loader<'account', VoiceAccountRow> = {
  name: 'account',
  load: (db, { params }) => findVoiceAccount(db, params['project_id'] ?? ''),
  revision,
}

const trunk: Loader<'trunk', TrunkRow> = {
  name: 'trunk',
  load: (db, { id }) => findAnyTrunk(db, id),
  revision,
}

const alert: Loader<'alert', AlertRow> = { name: 'alert', load: (db, { id }) => findAnyAlert(db, id) }

const containment: Loader<'containment', ContainmentRow> = {
  name: 'containment',
  load: (db, { id }) => findAnyContainment(db, id),
}

const releaseRequest: Loader<'release_request', ReleaseRequestRow> = {
  name: 'release_request',
  load: (db, { id }) => findAnyReleaseRequest(db, id),
}

const member: Loader<'member', MemberRow> = { name: 'member', load: (db, { id }) => findAnyMember(db, id) }

const node: Loader<'node', NodeRow> = { name: 'node', load: (db, { id }) => findNode(db, id) }

/** Declares an endpoint of /operator/v1. `{project_id}` loads a project of any organization, as `customer`. */
export const route = routesWith({
  organization_id: organization,
  project_id: customer,
  carrier_id: carrier,
  price_book_id: book,
  cost_book_id: costBook,
  key_id: key,
  number_id: number,
  import_id: numberImport,
  voice_account: account,
  trunk_id: trunk,
  alert_id: alert,
  containment_id: containment,
  request_id: releaseRequest,
  node_id: node,
  member_id: member,
} as const)
