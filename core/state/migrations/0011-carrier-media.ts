import { type AnyDb, createTables } from './create-tables.ts'

/** The media of carriers is summed by minute and hour, as that of trunks is. */
export const up = (db: AnyDb): Promise<void> =>
  createTables(db, {
    carrier_media_step: {
      key: 'carrier_id step_ms begin_ms',
      columns:
        'carrier_id step_ms:int begin_ms:int legs:int packets_received:int packets_sent:int octets_received:int ' +
        'octets_sent:int packets_lost:int packets_late:int packets_discarded:int packets_unsent:int jitter_legs:int ' +
        'jitter_us:int mos_legs:int mos_thousandths:int',
      clustered: true,
      indexes: {
        carrier_media_step_age: 'step_ms begin_ms',
      },
    },
  })
