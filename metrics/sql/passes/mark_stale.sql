-- Baselines that this pass makes wrong, said before anything else is kept: a pass that dies half-way finds them again.
-- Inputs: stale_baselines.
UPDATE core.baselines b SET stale = true
WHERE EXISTS (SELECT 1 FROM stale_baselines s WHERE s.series = b.series AND s.day = b.day) AND NOT b.stale;
