import { hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'

/** The tabs of the pages about calls, as the member may see them. */
export const CALL_TABS = () => [
  { id: 'history', text: 'History', href: hrefOf('/calls') },
  ...(may('live_calls:read') ? [{ id: 'live', text: 'Live', href: hrefOf('/calls/live') }] : []),
  ...(may('live_calls:read')
    ? [
        { id: 'rooms', text: 'Rooms', href: hrefOf('/rooms') },
        { id: 'queues', text: 'Queues', href: hrefOf('/queues') },
      ]
    : []),
  ...(may('recordings:manage') ? [{ id: 'recordings', text: 'Recordings', href: hrefOf('/recordings') }] : []),
]
