BEGIN TRANSACTION;
CREATE TABLE boundaries (
	exchange VARCHAR NOT NULL, 
	first_event INTEGER NOT NULL, 
	pairs BLOB NOT NULL, 
	PRIMARY KEY (exchange, first_event)
)
 WITHOUT ROWID

;
INSERT INTO "boundaries" VALUES('e1',2,X'02000000030000000300000009000000');
INSERT INTO "boundaries" VALUES('e2',2,X'0200000003000000');
CREATE TABLE completions (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	exchange VARCHAR NOT NULL, 
	assistant VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	turn INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	model VARCHAR NOT NULL, 
	model_reported VARCHAR DEFAULT '' NOT NULL, 
	opened_at FLOAT NOT NULL, 
	closed_at FLOAT, 
	outcome VARCHAR, 
	finish VARCHAR, 
	code VARCHAR, 
	detail TEXT, 
	prompt_tokens INTEGER, 
	completion_tokens INTEGER, 
	cached_tokens INTEGER, 
	reasoning_tokens INTEGER, 
	source VARCHAR, 
	completion_bytes INTEGER DEFAULT 0 NOT NULL, 
	cost FLOAT, 
	currency VARCHAR DEFAULT 'USD' NOT NULL, 
	first_delta FLOAT, 
	duration FLOAT, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	FOREIGN KEY(exchange) REFERENCES exchanges (id)
);
INSERT INTO "completions" VALUES(1,'p1','e1','bus','0123456789abcdef',1,1,'small','small-1',1790000000.5,1790000002.0,'complete','stop',NULL,NULL,42,17,5,3,'reported',10,0.001,'USD',0.25,1.5);
INSERT INTO "completions" VALUES(2,'p2','e2','bus','0123456789abcdef',1,1,'small','',1790000010.5,NULL,NULL,NULL,NULL,NULL,40,1,NULL,NULL,NULL,0,NULL,'USD',NULL,NULL);
CREATE TABLE conversations (
	id VARCHAR NOT NULL, 
	assistant VARCHAR NOT NULL, 
	visitor VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	deleted_at FLOAT, 
	PRIMARY KEY (id)
);
INSERT INTO "conversations" VALUES('c1','bus','visitor',1790000000.0,NULL);
CREATE TABLE exchanges (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	conversation VARCHAR NOT NULL, 
	assistant VARCHAR NOT NULL, 
	visitor VARCHAR NOT NULL, 
	"key" VARCHAR, 
	body_hash VARCHAR, 
	question TEXT, 
	model VARCHAR NOT NULL, 
	replaces VARCHAR, 
	owner VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	outcome VARCHAR, 
	code VARCHAR, 
	"by" VARCHAR, 
	message TEXT, 
	detail TEXT, 
	events INTEGER DEFAULT 0 NOT NULL, 
	sent INTEGER DEFAULT 0 NOT NULL, 
	seen INTEGER, 
	marks TEXT DEFAULT '' NOT NULL, 
	generated TEXT, 
	shown TEXT, 
	PRIMARY KEY (number), 
	CONSTRAINT exchanges_visitor_key UNIQUE (visitor, "key"), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
INSERT INTO "exchanges" VALUES(1,'e1','c1','bus','visitor','k','h','Où est l’arrêt ?','small',NULL,'0123456789abcdef',1790000000.0,1790000002.0,'complete',NULL,NULL,NULL,NULL,4,4,NULL,'recorded
test_model','Mot à mot',NULL);
INSERT INTO "exchanges" VALUES(2,'e2','c1','bus','visitor',NULL,NULL,'question of e2','small',NULL,'0123456789abcdef',1790000010.0,NULL,NULL,NULL,NULL,NULL,NULL,2,2,NULL,'','Mot',NULL);
CREATE TABLE motamot_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT motamot_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "motamot_version" VALUES('0001');
CREATE TABLE owners (
	id VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	pid INTEGER NOT NULL, 
	started VARCHAR NOT NULL, 
	renewals INTEGER DEFAULT 0 NOT NULL, 
	opened_at FLOAT NOT NULL, 
	renewed_at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "owners" VALUES('fedcba9876543210','bus/0123456789abcdef0123456789abcdef','00000000-0000-4000-8000-000000000000/pid:[4026531836]',4242,'4242',0,1790000000.0,1790000000.0);
CREATE INDEX exchanges_conversation ON exchanges (conversation);
CREATE INDEX exchanges_open ON exchanges (owner) WHERE outcome IS NULL;
CREATE INDEX completions_exchange ON completions (exchange);
CREATE INDEX completions_opened_at ON completions (opened_at);
CREATE INDEX completions_open ON completions (owner) WHERE outcome IS NULL;
COMMIT;
