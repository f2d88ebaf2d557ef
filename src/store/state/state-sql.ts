// SQL that creates the tables of the state in state.duckdb.

export const CREATE_STATE = [
  'CREATE TABLE IF NOT EXISTS state_entries (table_name VARCHAR NOT NULL, key VARCHAR NOT NULL, place BIGINT NOT NULL, value VARCHAR NOT NULL)',
  // Entries of a table whose entries end by their age: those that one flush has written, without outer brackets. `known_at_ms`: no
  // entry is younger.
  `CREATE TABLE IF NOT EXISTS state_chunks (table_name VARCHAR NOT NULL, place BIGINT NOT NULL, known_at_ms BIGINT NOT NULL,
    entry_count BIGINT NOT NULL, entries VARCHAR NOT NULL)`,
  // `lsn`, `known_at_ms`: the last commit whose rows are in the lake. `is_begun`: the first state was saved; until then a start
  // begins anew. `rebuilt_at_ms`: when the state was rebuilt from the lake, which has no agents, keys and bans; NULL once an
  // operator has acknowledged that.
  `CREATE TABLE IF NOT EXISTS state_position (lsn BIGINT NOT NULL, known_at_ms BIGINT NOT NULL, is_begun BOOLEAN NOT NULL,
    rebuilt_at_ms BIGINT)`,
  'INSERT INTO state_position SELECT 0, 0, false, NULL WHERE NOT EXISTS (FROM state_position)',
]
