import type { AlertKind } from './types.ts'

const OF_MONEY: readonly AlertKind[] = ['balance_low', 'spend_daily', 'spend_monthly']

/** Whether a role may see alerts of a kind: those about balances and budgets are for those who may see bills. */
export const mayBeSeen = (kind: AlertKind, role: string): boolean =>
  !OF_MONEY.includes(kind) || role === 'org:admin' || role === 'org:billing'
