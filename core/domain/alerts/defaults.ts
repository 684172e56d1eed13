import { CURRENCY } from '../rating/currency.ts'
import type { AlertKind, AlertPolicy, Resolution, Threshold } from './types.ts'

const NO_THRESHOLD: Threshold = {
  amount_minor: null,
  currency: null,
  min_events: null,
  percent: null,
  window_seconds: null,
}
const plain = (rule: Resolution['rule'], more: Partial<Resolution> = {}): Resolution => ({
  rule,
  amount_minor: null,
  count: null,
  currency: null,
  for_seconds: null,
  percent: null,
  ...more,
})
const money = (amount_minor: number, more: Partial<Threshold> = {}): Threshold => ({
  ...NO_THRESHOLD,
  amount_minor,
  currency: CURRENCY,
  ...more,
})

type Default = Pick<
  AlertPolicy,
  'threshold' | 'resolution' | 'channels' | 'platform_ceiling_minor' | 'platform_ceiling_window_seconds'
>
const NO_CEILING = { platform_ceiling_minor: null, platform_ceiling_window_seconds: null }
const ALL_CHANNELS = ['in_app', 'email', 'webhook'] as const

/** The initial policies of each organization. Amounts are in kobo. */
export const DEFAULT_POLICIES: Readonly<Record<AlertKind, Default>> = {
  /** Fires when a prepaid balance falls below 5,000, and resolves at 6,000. */
  balance_low: {
    threshold: money(500_000),
    resolution: plain('below_threshold', { amount_minor: 600_000, currency: CURRENCY }),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
  /** 80 per cent of a daily cap of the project or of a subaccount. */
  spend_daily: {
    threshold: { ...NO_THRESHOLD, percent: '80' },
    resolution: plain('day_rollover'),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
  spend_monthly: {
    threshold: money(100_000_000),
    resolution: plain('month_rollover'),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
  /** 20,000 in five minutes on one trunk. At 200,000 in an hour the platform acts whatever the policy says. */
  spend_velocity: {
    threshold: money(2_000_000, { window_seconds: 300, min_events: 3 }),
    resolution: plain('below_threshold', { for_seconds: 600 }),
    channels: ALL_CHANNELS,
    platform_ceiling_minor: 20_000_000,
    platform_ceiling_window_seconds: 3600,
  },
  /** At 100 per minute or more. */
  first_seen_high_cost_destination: {
    threshold: money(10_000, { min_events: 1, window_seconds: 600 }),
    resolution: plain('acknowledged_or_24h'),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
  new_source_ip: {
    threshold: { ...NO_THRESHOLD, min_events: 1, window_seconds: 3600 },
    resolution: plain('acknowledged_or_24h'),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
  /** As many unanswered keep-alives as make a target degraded, or failed tries of a webhook. */
  endpoint_health: {
    threshold: { ...NO_THRESHOLD, min_events: 2 },
    resolution: plain('consecutive_successes', { count: 2 }),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
  trunk_apply_failed: {
    threshold: NO_THRESHOLD,
    resolution: plain('later_revision'),
    channels: ALL_CHANNELS,
    ...NO_CEILING,
  },
}
