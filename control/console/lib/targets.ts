import type { TrunkSummary } from './types.ts'

/** Whether every target of a trunk leaves our questions unanswered. */
export const noTargetAnswers = ({ endpoints: { count: all, silent } }: Pick<TrunkSummary, 'endpoints'>): boolean =>
  silent > 0 && silent === all
