import type { Migration } from 'kysely'
import * as firstCall from './0001-first-call.ts'
import * as admission from './0002-admission.ts'
import * as control from './0003-control.ts'
import * as signaling from './0004-signaling.ts'
import * as voice from './0005-voice.ts'
import * as ladder from './0006-ladder.ts'
import * as outboxDue from './0007-outbox-due.ts'
import * as recordingBytes from './0008-recording-bytes.ts'
import * as metrics from './0010-metrics.ts'
import * as registrations from './0011-registrations.ts'
import * as billing from './0012-billing.ts'
import * as auditHead from './0013-audit-head.ts'
import * as alerts from './0015-alerts.ts'
import * as trunkTests from './0016-trunk-tests.ts'
import * as endedCalls from './0017-ended-calls.ts'
import * as clusteredSteps from './0018-clustered-steps.ts'
import * as carrierRegistration from './0019-carrier-registration.ts'
import * as callIds from './0029-call-ids.ts'
import * as onTheirWay from './0031-on-their-way.ts'
import * as drain from './0039-drain.ts'

import * as sourceStanding from './0041-source-standing.ts'
import * as tlsVerification from './0042-tls-verification.ts'
import * as signIns from './0046-sign-ins.ts'
import * as foreignCallers from './0048-foreign-callers.ts'
import * as sourceRanges from './0050-source-ranges.ts'
import * as registrationTls from './0057-registration-tls.ts'
import * as machines from './0060-machines.ts'
import * as taskLeases from './0061-task-leases.ts'

/** In order of name; a migration that has landed is never edited. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-first-call': firstCall,
  '0002-admission': admission,
  '0003-control': control,
  '0004-signaling': signaling,
  '0005-voice': voice,
  '0006-ladder': ladder,
  '0007-outbox-due': outboxDue,
  '0008-recording-bytes': recordingBytes,
  '0010-metrics': metrics,
  '0011-registrations': registrations,
  '0015-alerts': alerts,
  '0016-trunk-tests': trunkTests,
  '0012-billing': billing,
  '0013-audit-head': auditHead,
  '0017-ended-calls': endedCalls,
  '0018-clustered-steps': clusteredSteps,
  '0019-carrier-registration': carrierRegistration,
  '0029-call-ids': callIds,
  '0031-on-their-way': onTheirWay,
  '0039-drain': drain,
  '0041-source-standing': sourceStanding,
  '0042-tls-verification': tlsVerification,
  '0046-sign-ins': signIns,
  '0048-foreign-callers': foreignCallers,
  '0050-source-ranges': sourceRanges,
  '0057-registration-tls': registrationTls,
  '0060-machines': machines,
  '0061-task-leases': taskLeases,
}
