import { findTrunk, type TrunkRow } from '../../core/state/trunks.ts'
import { type Loader, routesWith } from '../http/route.ts'

const trunk: Loader<'trunk', TrunkRow> = {
  name: 'trunk',
  load: (db, { id, project_id }) => findTrunk(db, project_id, id),
  revision: row => row.revision,
  subaccount_id: row => row.subaccount_id,
}

/** What the parameters of a path mean: `{trunk_id}` gives `run` the trunk, or the caller a 404. */
export const LOADERS = { trunk_id: trunk } as const

/** Declares an endpoint of /v1. */
export const route = routesWith(LOADERS)
