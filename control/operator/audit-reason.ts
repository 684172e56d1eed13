import { described, lines } from '../http/schema.ts'

/** Why an operator does what a request asks for. */
export const AuditReason = described(lines(500), 'Why, for the audit trail.')
