// SQL that creates the tables of the state in state.duckdb.

export const CREATE_STATE = [
  'CREATE TABLE IF NOT EXISTS state_entries (table_name VARCHAR NOT NULL, key VARCHAR NOT NULL, place BIGINT NOT NULL, value VARCHAR NOT NULL)',
  // Entries of a table whose entries end by their age: those that one flush has written, without outer brackets. `known_at_ms`: no
  // entry is younger.
  `CREATE TABLE IF NOT EXISTS state_chunks (table_name VARCHAR NOT NULL, place BIGINT NOT NULL, known_at_ms BIGINT NOT NULL,
    entry_count BIGINT NOT NULL, entries VARCHAR NOT NULL)`,
  // `lsn`, `known_at_ms`: the last commit whose rows are in the lake. `is_begun`: the first state was saved; until then a start
  // begins anew. `rebuilt_at_ms`: when an earlier version rebuilt the state; such losses are in losses.json now.
  `CREATE TABLE IF NOT EXISTS state_position (lsn BIGINT NOT NULL, known_at_ms BIGINT NOT NULL, is_begun BOOLEAN NOT NULL,
    rebuilt_at_ms BIGINT)`,
  // The last recorded event that is in the lake (0: none), and whether its run was simulated (NULL: not known).
  'ALTER TABLE state_position ADD COLUMN IF NOT EXISTS event_no BIGINT DEFAULT 0',
  'ALTER TABLE state_position ADD COLUMN IF NOT EXISTS event_simulated BOOLEAN',
  // By table, the time by which its entries age, as JSON; NULL: known_at_ms for all.
  'ALTER TABLE state_position ADD COLUMN IF NOT EXISTS aged_to_ms VARCHAR',
  // By which ages entries of the state have ended (NULL: not known): those of the settings of the process that saved it.
  'ALTER TABLE state_position ADD COLUMN IF NOT EXISTS cooldown_kept_ms BIGINT',
  'ALTER TABLE state_position ADD COLUMN IF NOT EXISTS labels_delay_ms BIGINT',
  // The last `known_at` that was taken for rows that are not of the log (NULL: not known); see lake/known-at.ts.
  'ALTER TABLE state_position ADD COLUMN IF NOT EXISTS last_known_ms BIGINT',
  // Numbers of recorded events that neither the journal nor the lake has, why, and when an operator acknowledged it.
  `CREATE TABLE IF NOT EXISTS events_lost (first BIGINT NOT NULL, last BIGINT NOT NULL, reason VARCHAR NOT NULL,
    found_at TIMESTAMP NOT NULL, settled_at TIMESTAMP)`,
  // Intervals whose bars may have been written before it was known that a feed was away.
  'CREATE TABLE IF NOT EXISTS incomplete_bars (tf VARCHAR NOT NULL, t TIMESTAMP NOT NULL)',
  // Market time that passed twice, first by a clock that was ahead; see events/rewound-spans.ts.
  'CREATE TABLE IF NOT EXISTS rewound_spans (first_at TIMESTAMP NOT NULL, last_at TIMESTAMP NOT NULL)',
  'INSERT INTO state_position (lsn, known_at_ms, is_begun) SELECT 0, 0, false WHERE NOT EXISTS (FROM state_position)',
]
