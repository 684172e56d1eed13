import type { Tables } from '../create-tables.ts'

/** Prices, accounts and the costs of calls. */
export const MONEY: Tables = {
  price_book: {
    key: 'id',
    columns: 'id project_id? name direction currency effective_from created_at revision:int',
    indexes: {
      price_book_project: 'project_id direction effective_from',
    },
  },
  rate: {
    key: 'id',
    columns:
      'id price_book_id prefix label rate_unit rate_micro:int increment_initial_seconds:int ' +
      'increment_additional_seconds:int',
    unique: {
      rate_prefix: 'price_book_id prefix',
    },
  },
  billing_account: {
    key: 'id',
    columns: 'id name currency prepaid:int balance_minor:int credit_minor:int held_minor:int',
  },
  ledger: {
    counted: 'position',
    columns:
      'billing_account_id project_id? kind call_sid? note? reference? at amount_minor:int balance_after_minor:int',
    indexes: {
      ledger_account: 'billing_account_id position',
      ledger_account_at: 'billing_account_id at',
    },
    unique: {
      ledger_call: ['call_sid', "kind = 'charge'"],
    },
  },
  reservation: {
    key: 'call_sid',
    columns:
      'call_sid project_id billing_account_id billing destination price_book_id? rate_id? rate_prefix? ' +
      'rate_label? rate_unit currency day caps begun_at settled_at? price_book_revision:int? rate_micro:int ' +
      'increment_initial_seconds:int increment_additional_seconds:int held_minute:int held_minor:int ' +
      'paid_until_seconds:int? duration_seconds:int? billed_seconds:int? charge_minor:int?',
    indexes: {
      reservation_begun: 'begun_at',
      reservation_project_day: 'project_id day',
    },
  },
  spend_day: {
    key: 'subject_id level day',
    columns: 'level subject_id day spent_minor:int',
  },
  spend_minute: {
    key: 'subject_id level minute',
    columns: 'level subject_id minute:int spent_minor:int',
  },
  billing_document: {
    key: 'project_id period',
    columns: 'project_id period issued_at body',
  },
}
