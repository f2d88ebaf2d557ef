// In: nothing. Out: SQL that makes the tables of the state.

export const CREATE_STATE = [
  'CREATE TABLE IF NOT EXISTS state_entries (table_name VARCHAR NOT NULL, key VARCHAR NOT NULL, place BIGINT NOT NULL, value VARCHAR NOT NULL)',
  // The last commit whose rows are in the lake; whether the state was ever taken up, by a new folder, from format 1, or from
  // the lake's files; and since when it lacks what was in no file, until an operator takes note of that.
  `CREATE TABLE IF NOT EXISTS state_position (lsn BIGINT NOT NULL, known_at_ms BIGINT NOT NULL, is_begun BOOLEAN NOT NULL,
    rebuilt_at_ms BIGINT)`,
  'INSERT INTO state_position SELECT 0, 0, false, NULL WHERE NOT EXISTS (FROM state_position)',
]
